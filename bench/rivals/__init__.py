"""What is measured: Tupelo, other packages, ROOT and the limits of the machine, each in its own process."""
