"""A sink's epochs in a cluster."""

from tests.storm.actors.sinks import SinkWriter


class EpochWriter(SinkWriter):
    """Its commits are passed on, and asked for again where a node dies meanwhile: rows are there once."""

    is_asked_once = False
