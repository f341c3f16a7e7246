"""A bar for those who sit at a terminal, and silence for everybody else."""

import io
import sys

import pytest

from goqueue.cli.parts.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())

    with progress("reading", total=10) as bar:
        assert bar.is_shown
        bar.advance(4, "2 messages")

    assert isinstance(sys.stderr, Terminal)
    assert "2 messages" in sys.stderr.getvalue()


def test_a_total_may_be_known_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())

    with progress("looking") as bar:
        bar.expect(2)
        bar.advance(2, "2 sent back")

    assert isinstance(sys.stderr, Terminal)
    assert "2 sent back" in sys.stderr.getvalue()


def test_a_pipe_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading", total=10) as bar:
        assert not bar.is_shown
        bar.advance(4, "2 messages")
        bar.expect(20)

    assert capsys.readouterr().err == ""
