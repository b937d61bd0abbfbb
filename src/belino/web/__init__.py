"""HTTP and WebSocket, thin: who may ask for what, and how values look on the wire."""
