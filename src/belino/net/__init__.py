"""Network access: one HTTP client, bounded streams, retries, and redaction of secrets."""
