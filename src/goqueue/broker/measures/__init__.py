"""What the broker can be measured by: a table of families, each read from the broker as it is then."""
