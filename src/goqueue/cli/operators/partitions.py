"""`goqueue-admin partition`: what to do about a partition that has lost something."""

from typing import Annotated

import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.parts.arguments import Force
from goqueue.cli.parts.asking import confirm
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import invocation, noun
from goqueue.cli.parts.output import show_done

app = noun("Say what becomes of partitions that are damaged.")

Place = Annotated[str, typer.Argument(metavar="TOPIC/PARTITION", help="Which partition, like orders/0.")]


@app.command("accept")
def accept(
    context: typer.Context,
    place: Place,
    end_offset: Annotated[
        int | None,
        typer.Option("--end-offset", min=0, help="Go on at this offset, if it had come that far at least."),
    ] = None,
    force: Force = False,
) -> None:
    """Let a damaged partition go on without what it has lost: it takes messages again.

    New messages come behind every offset it is known to have had; readers pass over what is gone.
    """
    topic, slash, number = place.rpartition("/")
    if not slash or not number.isdecimal():
        raise WrongCommand(f"{place!r} names no partition, like orders/0")
    confirm(f"What {place} has lost will be taken as lost.", is_forced=force)
    with connect(context) as queue:
        accepted = queue.topics.accept_loss(topic, int(number), end_offset=end_offset)
    runs = ", ".join(f"{first} to {end - 1}" for first, end in accepted.lost) or "unknown"
    text = f"{place} goes on at offset {accepted.end_offset}; lost offsets: {runs}"
    show_done(invocation(context).output, text, accepted)
