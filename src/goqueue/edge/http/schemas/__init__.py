"""The schema registry, with Confluent's keys and with those of older clients."""
