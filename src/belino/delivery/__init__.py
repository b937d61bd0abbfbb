"""Replies on the way out: cut to size, planned as parcels, sent in order."""
