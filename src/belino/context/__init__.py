"""What the agent is told, assembled without a model."""
