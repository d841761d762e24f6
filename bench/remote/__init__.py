"""Reading over a network."""
