"""Which columns a topic takes from Spark. A wrong one is told before the first row is on its way."""

from typing import TYPE_CHECKING

from goqueue.model.errors import Invalid

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_BYTES = ("binary", "string")
_WHOLE_NUMBERS = ("int", "bigint", "smallint", "tinyint")
COLUMNS: dict[str, tuple[str, ...]] = {
    "value": _BYTES,
    "key": _BYTES,
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": _WHOLE_NUMBERS,
    "topic": ("string",),
    "priority": (*_WHOLE_NUMBERS, "string"),
    "timestamp": ("timestamp", "timestamp_ntz"),
}
"""The columns, with the types each may have, as Spark writes them."""


def check_schema(schema: "StructType", *, topic: str | None) -> None:
    """Refuse rows that no topic can take."""
    names = schema.fieldNames()
    problems = []
    if "deliver_at" in names:
        problems.append("deliver_at: delayed messages arrive with a later version; leave the column out")
    if unknown := [name for name in names if name not in COLUMNS and name != "deliver_at"]:
        problems.append(f"{', '.join(unknown)}: a topic takes the columns {', '.join(COLUMNS)}")
    if "value" not in names:
        problems.append("rows for a topic need a column value")
    if topic is None and "topic" not in names:
        problems.append("no topic to write to: set the option topic, or give the rows a column topic")
    for field in schema.fields:
        found, known = field.dataType.simpleString(), COLUMNS.get(field.name)
        if known is not None and found not in known:
            problems.append(f"column {field.name} must be {' or '.join(known)}, not {found}")
    if problems:
        raise Invalid("; ".join(problems))


def refuse_overwrite(overwrite: bool) -> None:
    """A log has no place where a row could be replaced."""
    if overwrite:
        raise Invalid(
            "a topic is a log: rows are added at its end and never replaced. Write with mode append; "
            "to begin anew, delete the topic first"
        )
