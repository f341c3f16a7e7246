"""Every error of the house has a name in Kafka's protocol."""

import pytest
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.errors import KAFKA_CODE_BY_ERROR, kafka_code, kafka_text
from goqueue.model.errors import Busy, GoQueueError, Invalid, ShuttingDown, Unavailable, every_error


@pytest.mark.parametrize("error", [GoQueueError, *every_error()])
def test_every_error_of_the_house_has_a_kafka_code(error: type[GoQueueError]) -> None:
    assert error in KAFKA_CODE_BY_ERROR


@pytest.mark.parametrize("error", [Busy, Unavailable, ShuttingDown])
def test_what_may_work_later_is_retriable_for_clients(error: type[GoQueueError]) -> None:
    assert KAFKA_CODE_BY_ERROR[error].retriable


def test_an_error_is_told_by_its_own_code_and_text() -> None:
    error = Invalid("no")

    assert kafka_code(error) is ErrorCode.invalid_request
    assert kafka_text(error) == "no"


def test_a_long_text_is_cut_so_that_it_fits_a_reply() -> None:
    assert len(kafka_text(Invalid("x" * 100_000))) < 32_767
