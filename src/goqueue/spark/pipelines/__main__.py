"""`goqueue pipelines FOLDER`: one long-lived driver that runs all pipelines of a folder."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from goqueue.model.errors import GoQueueError
from goqueue.spark.pipelines.driving import drive, open_session, parse_settings, stop_on_signals
from goqueue.spark.pipelines.reporting import Reporter
from goqueue.spark.pipelines.storage import DEFAULT_STORAGE, Storage


def main(arguments: Sequence[str]) -> int:
    """Run until a signal; the exit code is 1 when there is nothing to run with."""
    given = _parser().parse_args(arguments)
    if not given.folder.is_dir():
        return _refuse(f"{given.folder} is not a folder")
    try:
        settings = parse_settings(given.conf)
        spark = open_session(master=given.master, memory=given.memory, settings=settings)
        # Only where Spark is installed: it imports pyspark.
        from goqueue.spark.pipelines.runner import Runner

        runner = Runner(given.folder, spark, Storage(given.storage), bootstrap=given.bootstrap, tell=_tell)
        reporter = Reporter(_tell)

        def tick() -> bool:
            reporter.report(runner.tick())
            return True

        # Behind the session, which takes the signals for itself when it is made.
        with stop_on_signals() as stop:
            _tell("ready")
            try:
                drive(tick, stop)
            finally:
                runner.close()
                spark.stop()
    except GoQueueError as error:
        return _refuse(str(error))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="goqueue pipelines", description="Run all pipelines (*.yaml) of a folder on Spark."
    )
    parser.add_argument("folder", type=Path, help="the folder with the files")
    parser.add_argument(
        "--storage",
        type=Path,
        default=Path(DEFAULT_STORAGE),
        help=f"where checkpoints and status are kept (default ./{DEFAULT_STORAGE})",
    )
    parser.add_argument(
        "--bootstrap", default="127.0.0.1:8080", help="the HTTP door for pipelines that name none"
    )
    parser.add_argument("--master", default="local[*]", help="Spark's master (default local[*])")
    parser.add_argument("--memory", default="2g", help="memory of the driver (default 2g)")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark; may be repeated",
    )
    return parser


def _tell(line: str) -> None:
    print(line, flush=True)


def _refuse(text: str) -> int:
    print(f"goqueue pipelines: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
