"""Sandbox: decode hostile bytes in a process without files, network or programs."""
