"""SQL over ntuples and trees, by DuckDB."""
