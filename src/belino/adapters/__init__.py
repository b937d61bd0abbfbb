"""Platforms, one module each; found by name, so that adding one changes no other file."""
