"""What the agent may call, scoped to one channel by construction."""
