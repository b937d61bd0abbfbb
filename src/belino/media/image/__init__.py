"""Image: what a picture is, and the best copy of it under a limit."""
