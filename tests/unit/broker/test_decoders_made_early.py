"""What msgspec notes of a type is made before there are threads: two at once, and the process dies."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import goqueue

_HOUSE = Path(goqueue.__file__).parent
_LATE_AND_WELL = {
    "broker/storage/event_codec.py": "modules make codecs as they are imported, which the other test shows",
    "client/call.py": "under a lock",
    "spark/jobs/ledger.py": "rows are read by the thread that runs the job",
    "spark/options/values.py": "plain types, of which nothing is noted",
}
_ONE_THREAD = {"cli"}


def _rooms() -> list[str]:
    return sorted(path.name for path in _HOUSE.iterdir() if (path / "__init__.py").exists())


@pytest.mark.parametrize("room", [room for room in _rooms() if room not in _ONE_THREAD])
def test_no_function_makes_a_decoder_of_a_type(room: str) -> None:
    late = [
        f"{path.relative_to(_HOUSE)}:{line}"
        for path in sorted((_HOUSE / room).rglob("*.py"))
        if str(path.relative_to(_HOUSE)) not in _LATE_AND_WELL
        for line in _typed_in_functions(ast.parse(path.read_text(encoding="utf-8")))
    ]

    assert late == []


def test_every_event_is_prepared_when_the_broker_is_imported() -> None:
    """In a process of its own: here other tests have decoded events already."""
    program = """
import dataclasses, sys, threading
import goqueue.broker.opening
from goqueue.broker.delays import records as delay_records
from goqueue.broker.groups import state as delivery_state
from goqueue.broker.schemas import state as schema_state
from goqueue.broker import opening
from goqueue.broker.storage import store_journal
from goqueue.broker.transactions import journal as transaction_journal
codecs = [
    delay_records.SCHEDULE_EVENTS, delivery_state.EVENTS, store_journal.EVENTS,
    schema_state.EVENTS, transaction_journal._EVENTS,
]
kinds = [decoder.type for codec in codecs for decoder in codec._decoders.values()]
plain = [kind for kind in kinds if dataclasses.is_dataclass(kind)]
late = [kind.__name__ for kind in plain if "__msgspec_cache__" not in vars(kind)]
print(len(plain) > 40, late, threading.active_count())
"""
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert told.stdout.split("\n")[0] == "True [] 1"


def _typed_in_functions(tree: ast.Module) -> Iterator[int]:
    """Lines within functions at which msgspec is handed a type."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and _hands_over_a_type(node):
                    yield node.lineno


def _hands_over_a_type(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    return name in ("msgspec.convert", "msgspec.json.Decoder", "EventCodec") or (
        name == "msgspec.json.decode" and any(keyword.arg == "type" for keyword in call.keywords)
    )
