"""Messages in and out: publish, and look without a lease."""
