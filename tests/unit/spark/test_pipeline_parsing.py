"""Pipeline files: every problem is told with its line and column, and a good file becomes plain values."""

from pathlib import Path

import pytest

from goqueue.spark.pipelines.parsing import ERRORS_KEYS, KEYS, TABLE_KEYS, TOPIC_KEYS, read_pipeline
from goqueue.spark.pipelines.spec import Pipeline, PythonStep, SinkFormat, SqlStep, WatermarkStep, once
from goqueue.spark.pipelines.triggers import AVAILABLE_NOW, CONTINUOUS, Trigger
from goqueue.spark.pipelines.yaml_nodes import InvalidPipeline

BROKER = "127.0.0.1:8080"
EXAMPLES = Path(__file__).parents[3] / "examples" / "pipelines"
GOOD = """\
name: orders-clean
warehouse: lake
source:
  topics: [orders, returns]
  startingOffsets: {orders: {0: 12}}
  maxBytesPerBatch: 64MiB
steps:
  - sql: SELECT key, value, timestamp FROM source
    name: picked
  - watermark: {column: timestamp, delay: 10 minutes}
  - python: json:dumps
sinks:
  - {topic: orders-clean, key: key, value: "upper(value)", delivery: at-least-once, where: key IS NOT NULL}
  - {table: shop.orders, format: iceberg, trigger: 60s, columns: {id: "key"}}
errors: {topic: orders-dead, when: value IS NULL}
trigger: every 5m
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "pipeline.yaml"
    path.write_text(text)
    return path


def read(folder: Path, text: str) -> Pipeline:
    return read_pipeline(written(folder, text), bootstrap=BROKER)


def problems(folder: Path, text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(InvalidPipeline) as refused:
        read(folder, text)
    return [(at.line, at.column, told) for at, told in refused.value.problems]


def changed(what: str, becomes: str) -> str:
    assert what in GOOD
    return GOOD.replace(what, becomes)


def test_a_good_file_becomes_plain_values(tmp_path: Path) -> None:
    pipeline = read(tmp_path, GOOD)

    assert pipeline.name == "orders-clean"
    assert pipeline.source.options == {
        "bootstrap": BROKER,
        "topics": "orders,returns",
        "startingOffsets": '{"orders": {"0": 12}}',
        "maxBytesPerBatch": "64MiB",
    }
    assert [type(step) for step in pipeline.steps] == [SqlStep, WatermarkStep, PythonStep]
    topic, table = pipeline.sinks
    assert (topic.id, topic.format, topic.target) == ("orders-clean", SinkFormat.TOPIC, "orders-clean")
    assert topic.columns == {"value": "upper(value)", "key": "key"}
    assert topic.where == "key IS NOT NULL"
    assert topic.options == {"bootstrap": BROKER, "topic": "orders-clean", "delivery": "at-least-once"}
    assert topic.trigger == Trigger(is_bounded=False, every_ms=300_000)
    assert (table.id, table.format, table.columns) == ("shop.orders", SinkFormat.TABLE, {"id": "key"})
    assert table.options == {"table": "shop.orders", "tableFormat": "iceberg", "path": str(tmp_path / "lake")}
    assert table.trigger == Trigger(is_bounded=False, every_ms=60_000)
    assert pipeline.errors is not None
    assert (pipeline.errors.after, pipeline.errors.when) == ("picked", "value IS NULL")
    assert pipeline.errors.sink.target == "orders-dead"


def test_all_problems_are_told_at_once_with_their_places(tmp_path: Path) -> None:
    text = """\
name: orders clean
source: {topic: orders, startingOffset: earliest, maxBytesPerBatch: 64XB}
steps:
  - pyton: a:b
  - python: no_such_module:x
sinks:
  - {topic: orders-clean, valu: "x", delivery: once}
  - {table: lake.orders, format: iceburg, path: /lake, trigger: 60q}
  - {topic: orders-clean}
errors: {topic: dead}
"""

    told = problems(tmp_path, text)

    assert [(line, column) for line, column, _ in told] == [
        (1, 1),
        (2, 25),
        (2, 51),
        (4, 5),
        (4, 5),
        (5, 5),
        (7, 27),
        (7, 38),
        (8, 26),
        (8, 56),
        (9, 5),
        (10, 9),
    ]
    texts = [text for _, _, text in told]
    assert "did you mean startingOffsets?" in texts[1]
    assert "not a size" in texts[2]
    assert "did you mean python?" in texts[3]
    assert "no module no_such_module" in texts[5]
    assert "did you mean value?" in texts[6]
    assert "exactly-once" in texts[7]
    assert "iceberg, delta, parquet" in texts[8]
    assert "give each an id of its own" in texts[10]


def test_a_problem_reads_as_editors_like_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidPipeline) as refused:
        read(tmp_path, changed("trigger: every 5m", "trigger: sometimes"))

    assert str(refused.value).startswith(
        f"{tmp_path}/pipeline.yaml:16:1: trigger: 'sometimes' is not a trigger"
    )


def test_what_is_not_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    assert problems(tmp_path, "name: a\nsource: {topic: orders\nsinks: []\n")[0][0] == 3
    assert problems(tmp_path, "- a\n- b\n") == [(1, 1, "a pipeline has keys: name, source, sinks")]


def test_a_file_that_cannot_be_read_is_a_problem_too(tmp_path: Path) -> None:
    with pytest.raises(InvalidPipeline, match="cannot be read"):
        read_pipeline(tmp_path / "missing.yaml", bootstrap=BROKER)


def test_name_source_and_sinks_are_needed(tmp_path: Path) -> None:
    told = [text for _, _, text in problems(tmp_path, "trigger: continuous\n")]

    assert len(told) == 3
    assert all(any(f"needs {key}" in text for text in told) for key in ("name", "source", "sinks")), told


@pytest.mark.parametrize(
    ("what", "becomes", "line", "expected"),
    [
        ("name: picked", "name: source", 9, "cannot name a step"),
        ("python: json:dumps", "python: json:nothing", 11, "module json has no function nothing"),
        ("python: json:dumps", "python: json", 11, "write module:function"),
        ("delay: 10 minutes", "delai: 10 minutes", 10, "did you mean delay?"),
        ("when: value IS NULL", "when: value IS NULL, after: nowhere", 15, "there is no step nowhere"),
        ("errors: {topic: orders-dead, when: value IS NULL}", "errors: {topic: dead}", 15, "needs when"),
        ("topics: [orders, returns]", "topics:", 4, "topics has no value"),
        ("topics: [orders, returns]", "subscribe: orders\n  maxTriggerDelay: 1s", 5, "no counterpart"),
        ("warehouse: lake", "trigger: continuous", 16, "given twice"),
        ("warehouse: lake", "bootstrap: nowhere", 2, "not an address"),
        ("format: iceberg", "format: delta, catalog: x", 14, "catalog is for Iceberg"),
        (
            "{topic: orders-clean, key",
            "{id: errors, topic: orders-clean, key",
            13,
            "taken by the dead letters",
        ),
        (
            "{topic: orders-clean, key",
            "{table: a, topic: orders-clean, key",
            13,
            "either a topic, or a table",
        ),
    ],
)
def test_each_mistake_is_found_at_its_line(
    tmp_path: Path, what: str, becomes: str, line: int, expected: str
) -> None:
    told = problems(tmp_path, changed(what, becomes))

    assert any(at == line and expected in text for at, _, text in told), told


def test_a_python_step_beside_the_file_is_found_and_never_run(tmp_path: Path) -> None:
    (tmp_path / "prices.py").write_text("raise SystemExit\n\ndef enrich(frame): return frame\n")

    pipeline = read(tmp_path, changed("json:dumps", "prices:enrich"))

    assert isinstance(pipeline.steps[2], PythonStep)
    assert pipeline.steps[2].function == "prices:enrich"


def test_a_schema_makes_errors_of_what_does_not_fit_it(tmp_path: Path) -> None:
    (tmp_path / "orders.schema.json").write_text('{"properties": {"id": {"type": "integer"}}}')
    text = changed(
        "topics: [orders, returns]", "topics: [orders, returns]\n  schema: orders.schema.json"
    ).replace(", when: value IS NULL", "")

    pipeline = read(tmp_path, text)

    assert pipeline.source.json is not None
    assert pipeline.source.json.ddl == "`id` BIGINT"
    assert pipeline.errors is not None
    assert (pipeline.errors.after, pipeline.errors.when) == ("source", "body_error IS NOT NULL")
    assert pipeline.errors.reason == "body_error"


def test_what_is_wrong_with_a_schema_is_told_where_the_schema_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"properties": {"id": {"type": ["integer", "string"]}}}')
    text = changed("topics: [orders, returns]", "topics: [orders, returns]\n  schema: bad.json")

    assert [(line, column) for line, column, _ in problems(tmp_path, text)] == [(5, 3)]


def test_a_broker_may_be_named_for_all_or_for_one(tmp_path: Path) -> None:
    text = changed("warehouse: lake", "warehouse: lake\nbootstrap: here:1").replace(
        "delivery:", "bootstrap: there:2, delivery:"
    )

    pipeline = read(tmp_path, text)

    assert pipeline.source.options["bootstrap"] == "here:1"
    assert pipeline.sinks[0].options["bootstrap"] == "there:2"


def test_once_reads_what_is_there_whatever_the_triggers_say(tmp_path: Path) -> None:
    pipeline = once(read(tmp_path, GOOD))

    assert {sink.trigger for sink in pipeline.all_sinks} == {AVAILABLE_NOW}


def test_a_pipeline_is_continuous_unless_it_says_otherwise(tmp_path: Path) -> None:
    pipeline = read(tmp_path, changed("trigger: every 5m\n", ""))

    assert pipeline.sinks[0].trigger == CONTINUOUS


def test_the_docs_name_every_key_of_a_file() -> None:
    docs = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text(encoding="utf-8")

    assert [key for key in {*KEYS, *TOPIC_KEYS, *TABLE_KEYS, *ERRORS_KEYS} if f"`{key}`" not in docs] == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_is_without_a_problem(path: Path) -> None:
    assert read_pipeline(path, bootstrap=BROKER).name == path.stem


def test_what_opens_the_broker_is_said_once_and_not_shown_to_another(tmp_path: Path) -> None:
    (tmp_path / "api.key").write_text("a key")
    pipeline = read(
        tmp_path,
        f"""
name: locked
bootstrap: a:1
apiKeyFile: {tmp_path}/api.key
source: {{topic: orders}}
sinks:
  - topic: here
  - topic: there
    bootstrap: b:2
  - table: kept
    format: parquet
    path: {tmp_path}/kept
""",
    )

    here, there, table = pipeline.sinks
    door = {"bootstrap": "a:1", "apiKeyFile": f"{tmp_path}/api.key"}
    assert pipeline.source.options == {**door, "topic": "orders"}
    assert here.options == {**door, "topic": "here"}
    assert there.options == {"bootstrap": "b:2", "topic": "there"}
    assert not table.options.keys() & door.keys()
