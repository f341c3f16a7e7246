"""`goqueue-cli config`: the named brokers of this user."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from goqueue.cli.parts.completing import context_names
from goqueue.cli.parts.contexts import (
    DEFAULT_TIMEOUT_S,
    Context,
    Contexts,
    config_path,
    read_contexts,
    trust_of,
    write_contexts,
)
from goqueue.cli.parts.frame import (
    CA_FILE_HELP,
    CERT_FILE_HELP,
    KEY_FILE_HELP,
    SKIP_VERIFY_HELP,
    Invocation,
    invocation,
    noun,
)
from goqueue.cli.parts.output import show_done, show_rows, show_value
from goqueue.client.addresses import parse_addresses
from goqueue.client.tls import Tls
from goqueue.model.errors import Invalid

app = noun("Name the brokers you work with, and choose one.")
Name = Annotated[str, typer.Argument(help="The name of the context.", autocompletion=context_names)]


class ContextRow(msgspec.Struct):
    """A context as it is listed."""

    name: str
    server: str
    current: bool


@app.command("view")
def view(context: typer.Context) -> None:
    """Show the whole file, without keys."""
    contexts = read_contexts(config_path())
    hidden = {
        name: msgspec.structs.replace(each, api_key="***" if each.api_key else "")
        for name, each in contexts.contexts.items()
    }
    show_value(
        invocation(context).output, Contexts(current_context=contexts.current_context, contexts=hidden)
    )


@app.command("get-contexts")
def get_contexts(context: typer.Context) -> None:
    """List the contexts."""
    contexts = read_contexts(config_path())
    rows = [
        ContextRow(name, each.server, name == contexts.current_context)
        for name, each in sorted(contexts.contexts.items())
    ]
    columns = {"NAME": "name", "SERVER": "server", "CURRENT": "current"}
    show_rows(invocation(context).output, rows, columns, empty="there is no context")


@app.command("use-context")
def use_context(context: typer.Context, name: Name) -> None:
    """Make a context the current one."""
    contexts = read_contexts(config_path())
    contexts.named(name)
    write_contexts(config_path(), msgspec.structs.replace(contexts, current_context=name))
    show_done(invocation(context).output, f"context {name} is the current one", {"current-context": name})


@app.command("set-context")
def set_context(
    context: typer.Context,
    name: Name,
    server: Annotated[str | None, typer.Option(help="Its HTTP door, like http://localhost:8080.")] = None,
    api_key: Annotated[str | None, typer.Option(help="The key to show to it.")] = None,
    timeout: Annotated[int | None, typer.Option(min=1, help="Seconds that a request may take.")] = None,
    ca_file: Annotated[str | None, typer.Option(help=CA_FILE_HELP)] = None,
    cert_file: Annotated[str | None, typer.Option(help=CERT_FILE_HELP)] = None,
    key_file: Annotated[str | None, typer.Option(help=KEY_FILE_HELP)] = None,
    insecure_skip_verify: Annotated[bool | None, typer.Option(help=SKIP_VERIFY_HELP)] = None,
) -> None:
    """Make a context, or change what is given of one that is there."""
    contexts = read_contexts(config_path())
    known = contexts.contexts.get(name)
    if known is None and server is None:
        raise Invalid(f"context {name} is new: say where its broker is with --server")
    given = {
        "server": server,
        "api_key": api_key,
        "timeout": timeout,
        "ca_file": _absolute(ca_file),
        "cert_file": _absolute(cert_file),
        "key_file": _absolute(key_file),
        "insecure_skip_verify": insecure_skip_verify,
    }
    was = known or Context(server="", timeout=DEFAULT_TIMEOUT_S)
    changed = msgspec.structs.replace(
        was, **{field: value for field, value in given.items() if value is not None}
    )
    # What cannot be used later is told now.
    Tls(parse_addresses(changed.server), trust_of(Invocation(), changed))
    all_contexts = {**contexts.contexts, name: changed}
    write_contexts(config_path(), msgspec.structs.replace(contexts, contexts=all_contexts))
    show_done(invocation(context).output, f"context {name} is kept", {"name": name, "server": changed.server})


@app.command("delete-context")
def delete_context(context: typer.Context, name: Name) -> None:
    """Forget a context."""
    contexts = read_contexts(config_path())
    contexts.named(name)
    rest = {each: known for each, known in contexts.contexts.items() if each != name}
    write_contexts(config_path(), msgspec.structs.replace(contexts, contexts=rest))
    show_done(invocation(context).output, f"context {name} is forgotten", {"name": name, "deleted": True})


def _absolute(file: str | None) -> str | None:
    """A file as other folders know it: commands are typed in any of them."""
    return str(Path(file).absolute()) if file else file
