"""`goqueue-cli job`: bulk work on topics, on Spark."""
