"""A picture that changes: when it is drawn, when it ends, and what happens when the broker is away."""

from collections.abc import Callable, Iterator

import pytest

from goqueue.cli.parts.live import watch
from goqueue.model.errors import Unavailable


def pauses(count: int) -> Callable[[float], bool]:
    """A user who has seen enough after so many pauses."""
    left = iter([False] * (count - 1) + [True])
    return lambda _: next(left)


def samples(*values: str | Exception) -> Callable[[], str]:
    left: Iterator[str | Exception] = iter(values)

    def take() -> str:
        value = next(left)
        if isinstance(value, Exception):
            raise value
        return value

    return take


def test_without_a_screen_each_sample_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []

    watch(samples("a", "b", "c"), str, told.append, interval_s=1, on_screen=False, pause=pauses(3))

    assert told == ["a", "b", "c"]


def test_a_screen_shows_the_last_sample(capsys: pytest.CaptureFixture[str]) -> None:
    watch(samples("a", "b"), str, pytest.fail, interval_s=1, on_screen=True, pause=pauses(2))

    assert capsys.readouterr().out.split() == ["b"]


def test_a_broker_that_went_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    take = samples("a", Unavailable("nobody there"))

    watch(take, str, pytest.fail, interval_s=1, on_screen=True, pause=pauses(2))

    assert capsys.readouterr().out.splitlines() == ["a", "nobody there"]


def test_a_broker_that_went_is_waited_for_without_a_screen_too(capsys: pytest.CaptureFixture[str]) -> None:
    take = samples("a", Unavailable("nobody there"), "b")

    watch(take, str, print, interval_s=1, on_screen=False, pause=pauses(3))

    told = capsys.readouterr()
    assert (told.out, told.err) == ("a\nb\n", "nobody there\n")


def test_a_broker_that_never_was_is_an_error() -> None:
    for on_screen in (True, False):
        with pytest.raises(Unavailable):
            watch(samples(Unavailable("nobody")), str, print, interval_s=1, on_screen=on_screen)


def test_ctrl_c_ends_it_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: float) -> bool:
        raise KeyboardInterrupt

    for on_screen in (True, False):
        watch(samples("a"), str, print, interval_s=1, on_screen=on_screen, pause=interrupted)
        assert capsys.readouterr().out.strip() == "a"
