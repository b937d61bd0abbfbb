"""Values and ports: what the whole house speaks, on the standard library alone."""
