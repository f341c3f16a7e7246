"""The HTTP door: JSON in, one verb of the broker, JSON out. `HttpDoor` opens it."""
