"""Methods that are made from other functions, and look to `help` as if somebody had written them."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, get_args

Method = TypeVar("Method", bound=Callable[..., Any])


def shown_as(make: Callable[..., Any], returns: object = None) -> Callable[[Method], Method]:
    """Gives a method the name, the words and the arguments of what it is made from, behind its own first.

    A method gives what `returns` says, or what the call is about that `make` makes.
    """
    made = inspect.signature(make)
    about = get_args(made.return_annotation)
    gives = returns or (about[0] if about else made.return_annotation)

    def show(method: Method) -> Method:
        own = next(iter(inspect.signature(method).parameters.values()))
        rest = [one for name, one in made.parameters.items() if name != _SPEAKER]
        shown = made.replace(parameters=[own, *rest], return_annotation=gives)
        wraps(make)(method)
        method.__signature__ = shown  # type: ignore[attr-defined]  # functions take any attribute
        return method

    return show


_SPEAKER = "speaker"
"""An argument that a transaction gives by itself."""
