"""`goqueue-cli`: the root of the commands. A new noun is a module of its own and one line here."""

from typing import Annotated

import typer

from goqueue import __version__
from goqueue.cli import config, jobs, pipelines
from goqueue.cli.frame import Commands, Invocation, Output

app = typer.Typer(
    name="goqueue-cli",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Work with a GoQueue broker from the command line.",
)
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
        typer.Option("-c", "--context", help="A broker by its name in the config; also GOQUEUE_CONTEXT."),
    ] = None,
    output: Annotated[
        Output, typer.Option("-o", "--output", case_sensitive=False, help="How answers are printed.")
    ] = Output.TABLE,
    timeout_s: Annotated[
        int | None, typer.Option("--timeout", min=1, help="Seconds that a request may take (default 30).")
    ] = None,
) -> None:
    context.obj = Invocation(server=server, context_name=context_name, output=output, timeout_s=timeout_s)


@app.command("version")
def version() -> None:
    """Print the version of this tool."""
    print(f"goqueue-cli {__version__}")


def main() -> None:
    """Run one command and end with its exit code."""
    app()


if __name__ == "__main__":
    main()
