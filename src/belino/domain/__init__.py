"""Domain: the values and ports of the whole package, on the standard library alone."""
