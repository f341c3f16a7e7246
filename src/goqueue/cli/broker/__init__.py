"""Commands on what a broker has: topics, groups, schemas, and how it is."""
