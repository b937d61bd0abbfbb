"""Delivery of replies: cut to size, planned as parcels, sent in order."""
