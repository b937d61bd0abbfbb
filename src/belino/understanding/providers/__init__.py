"""Providers that read media, one module each: remote services, local models and commands."""
