"""Options of sources, sinks and lake tables: their values, and those of Spark's Kafka connector."""
