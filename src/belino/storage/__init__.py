"""Storage: all SQL and all files, behind the Store port."""
