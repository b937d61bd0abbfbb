"""Search: find the messages that serve an intent, from an index of terms, without a model. Pure: no SQL, no asyncio."""
