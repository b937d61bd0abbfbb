"""Understanding: text out of media, by providers, with a record of every attempt."""
