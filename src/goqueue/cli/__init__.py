"""Commands for people: `goqueue-cli`. It talks to a node over the wire, as any other client."""
