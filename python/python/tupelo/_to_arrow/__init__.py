"""Data and declarations of Python as Arrow tables and schemas, for writing."""
