"""How many items make a wave, where Spark tells its cores and where it does not."""

from typing import cast

import pytest
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

from goqueue.spark.jobs.work import items_at_once


class Context:
    """A context of so many cores."""

    def __init__(self, cores: int) -> None:
        self.defaultParallelism = cores


class Session:
    """A session with a context."""

    def __init__(self, cores: int) -> None:
        self.sparkContext = Context(cores)


class ConnectSession:
    """A session that has none."""

    @property
    def sparkContext(self) -> Context:  # noqa: N802 - Spark's name
        raise PySparkAttributeError("Spark Connect has no context")


@pytest.mark.parametrize(("session", "count"), [(Session(1), 8), (Session(10), 40), (ConnectSession(), 32)])
def test_a_wave_is_a_few_items_a_core(session: object, count: int) -> None:
    assert items_at_once(cast(SparkSession, session)) == count
