"""The broker that a command speaks to."""

import typer

from goqueue.cli.parts.contexts import Target, target
from goqueue.cli.parts.frame import invocation
from goqueue.client import GoQueue

RESTART_S = 60
"""For so long a broker that was there may be away before nobody waits for it any more."""


def connect(context: typer.Context) -> GoQueue:
    """The broker that is meant, as `with connect(context) as queue:`.

    A broker that is not there is not waited for: whoever typed a command wants to know.
    """
    return queue_at(target(invocation(context)))


def connect_to_follow(context: typer.Context) -> GoQueue:
    """The same for what goes on for hours: it must be there now, and may be started anew meanwhile."""
    with connect(context) as queue:
        queue.admin.health()
    return queue_at(target(invocation(context)), retry_for_s=RESTART_S)


def queue_at(where: Target, *, retry_for_s: float = 0) -> GoQueue:
    """A client for a broker."""
    return GoQueue(
        where.server,
        api_key=where.api_key,
        timeout_s=where.timeout_s,
        retry_for_s=retry_for_s,
        ca_file=where.trust.ca_file,
        cert_file=where.trust.cert_file,
        key_file=where.trust.key_file,
        insecure_skip_verify=where.trust.insecure_skip_verify,
    )
