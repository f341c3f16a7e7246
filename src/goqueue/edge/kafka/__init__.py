"""The Kafka door: unmodified Kafka clients publish, read and administer topics through it.

`protocol` carries bytes, `connection` keeps requests and replies in order, `apis` is the table of what
is served. Produce and Fetch are packed by hand because every batch goes through them; everything else
follows the schemas of the kio library and lives in `handlers`, one module a family.
"""
