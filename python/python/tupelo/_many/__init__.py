"""Many files: read as one sequence, planned as partitions, indexed and imported."""
