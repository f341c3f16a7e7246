"""Profiles of the earlier edition, which was written in Go: whoever asks for them hears what there is."""

from typing import NoReturn

from litestar import get

from goqueue.model.errors import NotFound


@get(["/debug/pprof", "/debug/pprof/{profile:str}"], include_in_schema=False, sync_to_thread=False)
def pprof_route() -> NoReturn:
    raise NotFound(
        "there are no Go profiles of a program in Python: `py-spy record --pid` and `py-spy dump --pid` look "
        "into a running broker, /metrics tells its memory and how late its loop runs"
    )


ROUTES = [pprof_route]
