"""All SQL and all files, behind the Store port."""
