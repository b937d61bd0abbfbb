"""Cassettes: a recorded conversation in one file, with pseudonyms in place of secrets, ids and names."""
