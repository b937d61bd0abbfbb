"""Readers: untrusted documents to text; they run in the sandbox's child."""
