"""Platform adapters, one module each, found by name: adding one changes no other file."""
