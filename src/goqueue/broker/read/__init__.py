"""Messages looked at without a lease: by offset, by time, as messages or as frames unopened.

Owns the cache of opened batches. It changes nothing that outlives it.
"""
