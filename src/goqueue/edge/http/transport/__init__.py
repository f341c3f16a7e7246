"""A connection and what stands before the routes: bounds on bytes, names of requests, rules for web pages."""
