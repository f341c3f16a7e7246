"""Options that are NAME=VALUE and may be repeated."""

from collections.abc import Iterable

from goqueue.cli.parts.exit_codes import WrongCommand


def pairs(texts: Iterable[str], *, what: str) -> list[tuple[str, str]]:
    """Names and values, in the order given."""
    found = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise WrongCommand(f"{what} is NAME=VALUE, not {text!r}")
        found.append((name, value))
    return found
