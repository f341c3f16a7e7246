"""What `edge/http/transport/connection.py` leans on in uvicorn, which keeps it to itself."""

import hashlib
import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path

from uvicorn.protocols.http import httptools_impl

from goqueue.edge.http.transport.connection import GuardedConnection

KNOWN_SOURCE = "1d4e1c579df4168433a61a01f10c628b31c1790e72dd9769d2b8633b22214033"


def test_the_protocol_is_the_one_that_was_read_line_by_line() -> None:
    source = hashlib.sha256(inspect.getsource(httptools_impl).encode()).hexdigest()

    assert source == KNOWN_SOURCE, (
        f"uvicorn {version('uvicorn')} has another httptools_impl.py: compare it with that of 0.54.0, see "
        "that GuardedConnection, Cycle, Flow, LazyEvent, Pipeline, PoliteTransport still fit; note its digest"
    )


def test_no_other_version_is_installed_with_the_broker() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]

    assert "uvicorn==0.54.*" in project["dependencies"]


def test_every_method_that_is_taken_over_is_still_called() -> None:
    ours = {name for name, value in vars(GuardedConnection).items() if inspect.isfunction(value)}
    own = {
        "__init__",
        "_decline",
        "_drop",
        "_end_stall",
        "_give_back",
        "_leave",
        "_look",
        "_refuse",
        "_rest",
        "_scope",
        "_stalled",
        "hang_up",
    }

    assert ours - own <= set(dir(httptools_impl.HttpToolsProtocol))
