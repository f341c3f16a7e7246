"""What a shell offers when TAB is pressed: names that the broker knows. Quick, and silent without one."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import typer

from goqueue.cli.parts.calling import queue_at
from goqueue.cli.parts.contexts import config_path, read_contexts, target
from goqueue.cli.parts.frame import Invocation
from goqueue.client import GoQueue
from goqueue.model.errors import GoQueueError

_PATIENCE_S = 1


def topic_names(context: typer.Context, incomplete: str) -> list[str]:
    """Topics that begin so."""
    return _names(context, incomplete, lambda queue: queue.topics.list())


def group_names(context: typer.Context, incomplete: str) -> list[str]:
    """Groups that begin so."""
    return _names(context, incomplete, lambda queue: [group.id for group in queue.groups.list()])


def subject_names(context: typer.Context, incomplete: str) -> list[str]:
    """Subjects of the schema registry that begin so."""
    return _names(context, incomplete, lambda queue: queue.schemas.subjects())


def context_names(incomplete: str) -> list[str]:
    """Contexts of this user that begin so."""
    try:
        known = read_contexts(config_path()).contexts
    except (GoQueueError, OSError):
        return []
    return sorted(name for name in known if name.startswith(incomplete))


def _names(context: typer.Context, incomplete: str, ask: Callable[[GoQueue], Iterable[str]]) -> list[str]:
    try:
        where = target(replace(_typed_so_far(context), timeout_s=_PATIENCE_S))
        with queue_at(where) as queue:
            return sorted(name for name in ask(queue) if name.startswith(incomplete))
    except (GoQueueError, OSError):
        # A line that is being typed is no place for an error.
        return []


def _typed_so_far(context: typer.Context) -> Invocation:
    """Where the broker is, from what stands on the line already: no command has been called yet."""
    given = context.find_root().params
    early = Invocation(server=given.get("server"), context_name=given.get("context_name"))
    late = context.obj if isinstance(context.obj, Invocation) else Invocation()
    return Invocation(
        server=late.server or early.server, context_name=late.context_name or early.context_name
    )
