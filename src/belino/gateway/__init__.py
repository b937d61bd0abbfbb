"""Gateway: takes in arrivals, runs turns, supervises adapters, and explains what happened to a message."""
