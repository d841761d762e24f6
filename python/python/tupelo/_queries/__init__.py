"""Entries as sources of queries: the columns that a query names are read, and of most only the entries that match."""
