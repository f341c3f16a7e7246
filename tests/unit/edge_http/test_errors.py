"""The table from errors to HTTP statuses has a line for every error of the house."""

from collections.abc import Iterator

import pytest

from goqueue.edge.http.errors import STATUS_OF, body_of, status_of
from goqueue.model import errors
from goqueue.model.errors import Busy, GoQueueError, MessageTooLarge, NotFound, TopicExists, TopicNotFound


def all_errors(error: type[GoQueueError] = GoQueueError) -> Iterator[type[GoQueueError]]:
    for below in error.__subclasses__():
        yield below
        yield from all_errors(below)


@pytest.mark.parametrize("error", list(all_errors()), ids=lambda error: error.__name__)
def test_every_error_has_a_status(error: type[GoQueueError]) -> None:
    assert 400 <= status_of(error) < 600
    assert error.code


def test_the_walk_sees_every_error_of_the_model() -> None:
    told = {
        thing
        for thing in vars(errors).values()
        if isinstance(thing, type) and issubclass(thing, GoQueueError)
    }

    assert told - {GoQueueError} <= set(all_errors())
    assert set(STATUS_OF) <= told


def test_an_error_without_a_line_of_its_own_has_its_familys_status() -> None:
    assert status_of(TopicNotFound) == status_of(NotFound) == 404
    assert (status_of(TopicExists), status_of(Busy)) == (409, 429)
    assert status_of(MessageTooLarge) == 413


def test_the_body_of_an_error_repeats_status_and_code() -> None:
    body = body_of(TopicNotFound("orders"))

    assert (body.error, body.status, body.code) == ("topic orders does not exist", 404, "topic_not_found")
