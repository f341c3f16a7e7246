"""Arguments and options that several commands take, worded once."""

from typing import Annotated

import typer

from goqueue.cli.parts.completing import topic_names
from goqueue.client.messages import Priority

Topic = Annotated[str, typer.Argument(help="The topic.", autocompletion=topic_names)]
Key = Annotated[str | None, typer.Option("-k", "--key", help="The key.")]
Headers = Annotated[
    list[str] | None,
    typer.Option("-H", "--header", metavar="NAME=VALUE", help="A header; may be repeated."),
]
Lane = Annotated[Priority | None, typer.Option("--priority", case_sensitive=False, help="The lane.")]
Delay = Annotated[
    str | None, typer.Option("-d", "--delay", metavar="DURATION", help="Deliver later: 1h30m from now.")
]
DeliverAt = Annotated[
    str | None, typer.Option("--deliver-at", metavar="TIME", help="Deliver at 2026-01-31T12:00:00Z.")
]
Force = Annotated[bool, typer.Option("-f", "--force", help="Do not ask.")]
