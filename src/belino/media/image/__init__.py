"""Image: facts of a picture, and its best copy under a limit."""
