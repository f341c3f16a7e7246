"""Topics as tables and streams on Spark, and the jobs that run there. The broker never imports this room."""

from goqueue.spark.sessions import session

__all__ = ["session"]
