"""`goqueue-cli completion`: the script that teaches a shell to complete command lines."""

from typing import Annotated, Literal

import typer
from typer.completion import shell_complete

PROGRAM = "goqueue-cli"
VARIABLE = "_GOQUEUE_CLI_COMPLETE"
"""With this set the program completes a line instead of running it; the library derives it from the name."""


def completion(
    context: typer.Context,
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.")],
) -> None:
    """Print the script for a shell: `source <(goqueue-cli completion bash)` completes commands and names."""
    code = shell_complete(context.find_root().command, {}, PROGRAM, VARIABLE, f"source_{shell}")
    raise typer.Exit(code)
