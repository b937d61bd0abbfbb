"""The conductor: takes arrivals in, runs turns, keeps adapters alive, and can tell what happened."""
