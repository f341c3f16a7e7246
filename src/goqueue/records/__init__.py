"""A record batch as bytes: its header, its checksum, its frame on disk, and the messages inside."""
