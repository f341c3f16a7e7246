"""The broker that a command of `goqueue-admin` speaks to: there are no contexts here, and no config file."""

import typer

from goqueue.cli.parts.calling import queue_at
from goqueue.cli.parts.contexts import DEFAULT_SERVER, DEFAULT_TIMEOUT_S, Target, trust_of
from goqueue.cli.parts.frame import invocation
from goqueue.client import GoQueue


def connect(context: typer.Context) -> GoQueue:
    """The broker that is meant, as `with connect(context) as queue:`."""
    call = invocation(context)
    return queue_at(
        Target(
            call.server or DEFAULT_SERVER,
            call.timeout_s or DEFAULT_TIMEOUT_S,
            call.api_key or None,
            trust_of(call),
        )
    )
