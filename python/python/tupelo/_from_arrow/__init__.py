"""Arrow batches as the arrays of other libraries, for reading."""
