"""HTTP and WebSocket layer: access control and the wire format."""
