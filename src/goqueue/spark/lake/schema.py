"""Which columns a lake table has: taken from the first rows, grown by later ones, never changed.

Types are compared in one plain form, because each library has its own dialect of Arrow: large strings
or small ones, times in the session's zone, names of list children.
"""

import pyarrow as pa

from goqueue.model.errors import Invalid
from goqueue.spark.lake.options import LakeFormat

_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_NARROW = (pa.int8(), pa.int16())


def lake_schema(schema: pa.Schema, table_format: LakeFormat) -> pa.Schema:
    """The columns of a frame as a table of this format keeps them; all of them may be null."""
    problems = [
        f"column {field.name} is of type {field.type}, which no lake table keeps"
        for field in schema
        if not _can_be_kept(field.type)
    ]
    names = [name.lower() for name in schema.names]
    problems += [f"column {name} stands twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if problems:
        raise Invalid("; ".join(problems))
    is_wide = table_format is LakeFormat.ICEBERG
    return pa.schema([pa.field(field.name, _plain(field.type, widen=is_wide)) for field in schema])


def added_columns(known: pa.Schema, offered: pa.Schema) -> list[pa.Field]:
    """The columns that the table does not have yet; Invalid where rows do not fit the others."""
    problems, added = [], []
    for field in offered:
        if field.name not in known.names:
            added.append(field)
        elif plain_type(known.field(field.name).type) != plain_type(field.type):
            kind = known.field(field.name).type
            problems.append(
                f"column {field.name} is {kind} in the table and {field.type} in the rows: cast it"
            )
    problems += [
        f"column {name} of the table is missing in the rows: select NULL AS {name} if that is meant"
        for name in known.names
        if name not in offered.names
    ]
    if problems:
        raise Invalid("the rows do not fit the table: " + "; ".join(problems))
    return added


def conform(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows in the columns of a schema: cast where the dialect differs, null where a column is missing."""
    if rows.schema.equals(schema):
        return rows
    columns = []
    for field in schema:
        if field.name not in rows.schema.names:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without dialect."""
    return _plain(kind, widen=False)


def _plain(kind: pa.DataType, *, widen: bool) -> pa.DataType:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if widen and kind in _NARROW:
        # Iceberg knows no whole numbers shorter than 32 bits.
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type, widen=widen)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _plain(child.type, widen=widen)) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type, widen=widen), _plain(kind.item_type, widen=widen))
    return kind


def _can_be_kept(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _can_be_kept(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_can_be_kept(child.type) for child in kind)
    if pa.types.is_map(kind):
        return _can_be_kept(kind.key_type) and _can_be_kept(kind.item_type)
    return not (pa.types.is_null(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind))
