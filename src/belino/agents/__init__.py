"""Agents: one module per kind."""
