"""The outside world: one HTTP client, bounded streams, patience, and silence about secrets."""
