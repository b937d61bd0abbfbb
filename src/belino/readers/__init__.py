"""Readers: hostile documents to text; what is here runs in the sandbox's child."""
