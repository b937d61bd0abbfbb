"""Turns: one message in, one reply out; the agent's prompt, progress display, and how the turn ends."""
