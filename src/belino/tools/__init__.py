"""The agent's tools, scoped to one channel by construction."""
