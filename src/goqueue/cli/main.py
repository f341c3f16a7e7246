"""`goqueue-cli`: the root of the commands. A new noun is a module of its own and one line here."""

from typing import Annotated

import typer

from goqueue.cli import completion, config
from goqueue.cli.broker import cluster, groups, schemas, top, topics
from goqueue.cli.jobs import commands as jobs
from goqueue.cli.messages import consume, dead_letters, delays, produce, schedules, traces
from goqueue.cli.parts.completing import context_names
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
    run,
)
from goqueue.cli.pipelines import commands as pipelines

app = typer.Typer(
    name="goqueue-cli",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Work with a GoQueue broker from the command line.",
)
app.add_typer(topics.app, name="topic")
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.add_typer(groups.app, name="group")
app.add_typer(dead_letters.app, name="dlq")
app.add_typer(delays.app, name="delay")
app.add_typer(schedules.app, name="schedule")
app.add_typer(schemas.app, name="schema")
app.add_typer(traces.app, name="trace")
app.command("top")(top.top)
app.command("health")(cluster.health)
app.add_typer(cluster.app, name="cluster")
app.add_typer(config.app, name="config")
app.add_typer(pipelines.app, name="pipeline")
app.add_typer(jobs.app, name="job")


@app.callback()
def take_global_options(
    context: typer.Context,
    server: Annotated[
        str | None, typer.Option("-s", "--server", help="The HTTP door of the broker; also GOQUEUE_SERVER.")
    ] = None,
    context_name: Annotated[
        str | None,
        typer.Option(
            "-c",
            "--context",
            help="A broker by its name in the config; also GOQUEUE_CONTEXT.",
            autocompletion=context_names,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
    timeout_s: TimeoutOption = None,
    ca_file: Annotated[
        str | None, typer.Option("--ca-file", envvar="GOQUEUE_CA_FILE", help=CA_FILE_HELP)
    ] = None,
    cert_file: Annotated[
        str | None, typer.Option("--cert-file", envvar="GOQUEUE_CERT_FILE", help=CERT_FILE_HELP)
    ] = None,
    key_file: Annotated[
        str | None, typer.Option("--key-file", envvar="GOQUEUE_KEY_FILE", help=KEY_FILE_HELP)
    ] = None,
    insecure_skip_verify: SkipVerifyOption = None,
    is_version_asked_for: VersionOption = False,
) -> None:
    context.obj = Invocation(
        server=server,
        context_name=context_name,
        output=output,
        timeout_s=timeout_s,
        ca_file=ca_file,
        cert_file=cert_file,
        key_file=key_file,
        insecure_skip_verify=insecure_skip_verify,
    )


app.command("completion")(completion.completion)
app.command("version")(cluster.version)


def main() -> None:
    """Run one command and end with its exit code."""
    run(app)


if __name__ == "__main__":
    main()
