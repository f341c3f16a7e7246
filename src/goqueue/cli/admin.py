"""`goqueue-admin`: the root of the commands for those who run a broker.

A new noun is a module of its own and one line here, as in `goqueue-cli`, whose frame, output and exit codes
these commands share.
"""

import platform
from typing import Annotated

import msgspec
import typer

from goqueue import __version__
from goqueue.cli.broker import moving
from goqueue.cli.broker.cluster import tell_health, tell_info
from goqueue.cli.operators import access as admin_access
from goqueue.cli.operators import audit as admin_audit
from goqueue.cli.operators import backups as admin_backups
from goqueue.cli.operators import identities
from goqueue.cli.operators import partitions as admin_partitions
from goqueue.cli.operators import quotas as admin_quotas
from goqueue.cli.operators import repair as admin_repair
from goqueue.cli.operators import tenants as admin_tenants
from goqueue.cli.operators import usage as admin_usage
from goqueue.cli.operators.call import connect
from goqueue.cli.parts.contexts import DEFAULT_SERVER
from goqueue.cli.parts.frame import (
    CA_FILE_HELP,
    CERT_FILE_HELP,
    KEY_FILE_HELP,
    Commands,
    Invocation,
    Output,
    OutputOption,
    SkipVerifyOption,
    TimeoutOption,
    VersionOption,
    invocation,
    noun,
    run,
)
from goqueue.cli.parts.output import show_fields

app = typer.Typer(
    name="goqueue-admin",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Look after a GoQueue broker: its health, its backups, its tenants.",
)
cluster = noun("Look at the broker: what runs, for how long, and how much it holds.")
app.add_typer(cluster, name="cluster")
app.add_typer(admin_backups.app, name="backup")
app.add_typer(admin_partitions.app, name="partition")
app.add_typer(admin_tenants.app, name="tenant")
app.add_typer(admin_quotas.app, name="quota")
app.add_typer(admin_usage.app, name="usage")
app.add_typer(admin_access.acls, name="acl")
app.add_typer(admin_access.roles, name="role")
app.add_typer(identities.users, name="user")
app.add_typer(identities.keys, name="key")
app.add_typer(admin_audit.app, name="audit")


@app.callback()
def take_global_options(
    context: typer.Context,
    server: Annotated[
        str,
        typer.Option("-s", "--server", envvar="GOQUEUE_ADMIN_SERVER", help="The HTTP door of the broker."),
    ] = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
    timeout_s: TimeoutOption = None,
    api_key: Annotated[
        str | None,
        typer.Option("--api-key", envvar="GOQUEUE_ADMIN_API_KEY", help="The key to show to the broker."),
    ] = None,
    ca_file: Annotated[
        str | None, typer.Option("--ca-file", envvar="GOQUEUE_ADMIN_CA_FILE", help=CA_FILE_HELP)
    ] = None,
    cert_file: Annotated[
        str | None, typer.Option("--cert-file", envvar="GOQUEUE_ADMIN_CERT_FILE", help=CERT_FILE_HELP)
    ] = None,
    key_file: Annotated[
        str | None, typer.Option("--key-file", envvar="GOQUEUE_ADMIN_KEY_FILE", help=KEY_FILE_HELP)
    ] = None,
    insecure_skip_verify: SkipVerifyOption = None,
    is_version_asked_for: VersionOption = False,
) -> None:
    context.obj = Invocation(
        server=server,
        output=output,
        timeout_s=timeout_s,
        api_key=api_key,
        ca_file=ca_file,
        cert_file=cert_file,
        key_file=key_file,
        insecure_skip_verify=insecure_skip_verify,
    )


class Version(msgspec.Struct):
    """What this tool is and runs on."""

    version: str
    runtime: str
    platform: str


@app.command("version")
def version(context: typer.Context) -> None:
    """Print the version of this tool."""
    told = Version(
        __version__, f"python{platform.python_version()}", f"{platform.system()}/{platform.machine()}".lower()
    )
    fields = {"Version": "version", "Runtime": "runtime", "OS/Arch": "platform"}
    show_fields(invocation(context).output, told, fields)


@app.command("health")
def health(context: typer.Context) -> None:
    """Say whether the broker can work, check by check. Exit code 0 if so, and 1 if not or nobody answers."""
    tell_health(context, connect)


app.command("repair")(admin_repair.repair)
cluster.command("decommission")(moving.decommission)


@cluster.command("status")
def status(context: typer.Context) -> None:
    """Show what runs, for how long, and how much it holds."""
    tell_info(context, connect)


def main() -> None:
    """Run one command and end with its exit code."""
    run(app)


if __name__ == "__main__":
    main()
