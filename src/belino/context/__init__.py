"""The agent's context, assembled without a model."""
