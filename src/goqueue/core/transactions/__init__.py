"""Producer ids and sequence numbers: a batch that comes twice is stored once."""
