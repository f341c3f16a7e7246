"""How a command ends: the codes that scripts may rely on, and which problem ends with which of them."""

from enum import IntEnum

from goqueue.client.errors import NobodyAnswers
from goqueue.model.errors import Invalid, NotFound


class ExitCode(IntEnum):
    """One meaning a code, the same for every command."""

    OK = 0
    FAILED = 1
    WRONG_COMMAND = 2
    NOT_FOUND = 3
    UNREACHABLE = 4
    PARTIAL = 5
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "the broker refused, a check failed, or something else went wrong",
    ExitCode.WRONG_COMMAND: "the command line is wrong, or a question could not be asked",
    ExitCode.NOT_FOUND: "what was named is not there",
    ExitCode.UNREACHABLE: "no broker answers",
    ExitCode.PARTIAL: "some of the messages were refused; the others are done",
    ExitCode.INTERRUPTED: "stopped with Ctrl-C before it was done",
    ExitCode.PIPE_CLOSED: "whoever read the output closed it, as `head` does",
}


class WrongCommand(Invalid):
    """Options that do not go together, or one that is missing."""


def exit_code(problem: BaseException) -> ExitCode:
    """The code with which a command ends that met this problem."""
    match problem:
        case WrongCommand():
            return ExitCode.WRONG_COMMAND
        case NotFound():
            return ExitCode.NOT_FOUND
        case NobodyAnswers():
            return ExitCode.UNREACHABLE
        case BrokenPipeError():
            return ExitCode.PIPE_CLOSED
        case _:
            return ExitCode.FAILED
