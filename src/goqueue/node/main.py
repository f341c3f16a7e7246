"""The `goqueue` command: settings, the lock of the data folder, and then serving.

What the broker is made of is imported only when there is something to serve: help and problems of
the settings are told at once.
"""

import contextlib
import logging
import os
import resource
import sys
from collections.abc import Mapping, Sequence

from goqueue.model.errors import Corrupt, GoQueueError, StorageFull
from goqueue.model.ports import is_disk_full
from goqueue.model.settings import MiB
from goqueue.node.config import ConfigProblems, NodeConfig, load_config
from goqueue.node.config_sources import CHECK_FLAG
from goqueue.node.lock import FolderInUse, FolderLock
from goqueue.node.logging_lines import start_logging

logger = logging.getLogger(__name__)

_REFUSED = 1
_START_BYTES = MiB
"""More than a start writes before it can serve."""
_PIPELINES = "pipelines"
_UP = "up"


def main() -> None:
    """Run a broker until a signal ends it.

    With `up` as the first word several of them, with `pipelines` a driver of pipelines.
    """
    if sys.argv[1:2] == [_PIPELINES]:
        _become_pipelines_driver(sys.argv[2:])
    if sys.argv[1:2] == [_UP]:
        sys.exit(_up(sys.argv[2:]))
    _forbid_test_tools()
    sys.exit(run(sys.argv[1:], os.environ))


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code: 0 after a clean stop, 1 when the broker could not start.

    With `--check` nothing is started: 0 when the settings are good, 1 when they are not.
    """
    try:
        config = load_config(arguments, environment)
    except ConfigProblems as refusal:
        _tell_problems(refusal.problems)
        return _REFUSED
    if CHECK_FLAG in arguments:
        print("the settings are good; nothing was started")
        return 0
    start_logging(config.logging_level, as_json=config.is_logging_json)
    _allow_many_files()
    try:
        with FolderLock(config.data_folder):
            _serve(config)
    except (FolderInUse, GoQueueError, OSError) as refusal:
        reason = f"{refusal}{_advice(refusal, config)}"
        if config.is_logging_json:
            logger.critical("gave_up reason=%s", reason)
        else:
            print(f"goqueue: {reason}", file=sys.stderr)
        return _REFUSED
    return 0


def _advice(refusal: Exception, config: NodeConfig) -> str:
    """What to do about a refusal that does not say so itself: damage, or a full disk without the reserve."""
    if isinstance(refusal, Corrupt):
        return (
            f"; see what `goqueue-admin repair {config.data_folder}` says, which changes nothing, "
            "and let it repair with --apply"
        )
    is_full = is_disk_full(refusal) if isinstance(refusal, OSError) else isinstance(refusal, StorageFull)
    if not is_full:
        return ""
    return (
        f"; the disk is full and holds no reserve to start with: free at least {_START_BYTES // MiB} MiB "
        f"where {config.data_folder} lies, or move that folder to a larger disk (GOQUEUE_BROKER_DATADIR)"
    )


def _become_pipelines_driver(arguments: Sequence[str]) -> None:
    """Go on as another program: the server's own process never imports Spark."""
    words = [sys.executable, "-m", "goqueue.spark.pipelines", *arguments]
    os.execv(sys.executable, words)  # noqa: S606 - no shell is what is wanted


def _up(arguments: Sequence[str]) -> int:
    from goqueue.node.up import up

    return up(arguments, os.environ)


def _serve(config: NodeConfig) -> None:
    from goqueue.node.serving import serve

    serve(config)


def _forbid_test_tools() -> None:
    """Keep hypothesis out of the process: kio loads it when it is installed.

    In a developer's environment that would cost every start more than a second, some memory, and a
    folder of hypothesis' own wherever the broker is started.
    """
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # Python's way to make an import fail


def _tell_problems(problems: Sequence[str]) -> None:
    count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    print(f"goqueue cannot start: {count} in its settings; nothing was started", file=sys.stderr)
    for number, problem in enumerate(problems, start=1):
        print(f"  {number}. {problem}", file=sys.stderr)


def _allow_many_files() -> None:
    """Raise the soft limit on open files to the hard one: each connection and each segment is a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems call their hard limit unlimited and then refuse it; the soft one will have to do.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    main()
