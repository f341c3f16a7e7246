"""Requests that are not hot, one module a family. A handler parses nothing: request in, reply out."""
