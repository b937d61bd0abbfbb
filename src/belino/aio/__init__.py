"""Asyncio parts that any package may use: deadlines, retries, keyed workers, background tasks."""
