"""Turns: one message in, one reply out; what the agent reads, what it shows on the way, and how the turn ends."""
