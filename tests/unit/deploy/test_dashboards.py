"""What lies in deploy/ for Prometheus and Grafana speaks of metrics that there are, with labels they have."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from promql_parser import AggregateExpr, Expr, VectorSelector, parse, walk

from goqueue.broker.measures.family import Kind
from goqueue.broker.measures.table import FAMILIES

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
ALERTS = DEPLOY / "prometheus" / "alerts" / "goqueue.yml"
UIDS = {
    "goqueue-overview",
    "goqueue-cluster",
    "goqueue-consumers",
    "goqueue-slo",
    "goqueue-tracing-transactions",
}
OF_THE_SCRAPE = {"instance", "job"}
"""Labels that Prometheus adds by itself."""
OF_OTHERS = {
    "up": set[str](),
    "process_cpu_seconds_total": set[str](),
    "process_resident_memory_bytes": set[str](),
}
"""Metrics that are not of the table: Prometheus' own, and those of the process."""
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not here (Debian package prometheus)"
)


def known_metrics() -> dict[str, set[str]]:
    """Every name that a query may use, with its labels."""
    known = dict(OF_OTHERS)
    for family in FAMILIES:
        labels = {*family.labels, "partition"} if family.by_partition else set(family.labels)
        if family.kind is Kind.HISTOGRAM:
            known |= {f"{family.name}_{part}": labels for part in ("count", "sum")}
            known[f"{family.name}_bucket"] = labels | {"le"}
        else:
            known[family.name] = labels
    return known


def panels_of(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", ())


def queries_of(board: dict[str, Any]) -> Iterator[str]:
    for panel in panels_of(board):
        for target in panel.get("targets", ()):
            if target["datasource"]["uid"] == "prometheus":
                yield target["expr"].replace("$slo_target", "99.9")


def alert_rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def problems_of(query: str) -> list[str]:
    """What a query names that is not there."""
    known = known_metrics()
    problems: list[str] = []
    offered = set(OF_THE_SCRAPE)
    asked: set[str] = set()

    def look(node: Expr) -> bool:
        if isinstance(node, VectorSelector):
            if node.name not in known:
                problems.append(f"no metric {node.name}")
                return True
            labels = known[node.name] | OF_THE_SCRAPE
            offered.update(labels)
            matched = {matcher.name for matcher in node.matchers.matchers}
            problems.extend(f"{node.name} has no label {label}" for label in matched - labels)
        elif isinstance(node, AggregateExpr) and node.modifier is not None:
            asked.update(node.modifier.labels)
        return True

    walk(parse(query), look)
    problems.extend(f"nothing here has a label {label} to sum by" for label in asked - offered)
    return problems


def test_the_dashboards_have_the_names_that_links_know() -> None:
    boards = [json.loads(path.read_text()) for path in DASHBOARDS]

    assert {board["uid"] for board in boards} == UIDS == {path.stem for path in DASHBOARDS}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_metric_of_a_dashboard_exists(path: Path) -> None:
    queries = list(queries_of(json.loads(path.read_text())))

    assert len(queries) > 10
    assert [problem for query in queries for problem in problems_of(query)] == []


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_the_panels_of_a_dashboard_have_their_own_place(path: Path) -> None:
    panels = list(panels_of(json.loads(path.read_text())))
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_the_variables_of_a_dashboard_are_asked_for_and_there(path: Path) -> None:
    board = json.loads(path.read_text())
    known = known_metrics()
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    used = set(
        re.findall(
            r"\$(\w+)",
            " ".join(t["expr"] for p in panels_of(board) for t in p.get("targets", ()) if "expr" in t),
        )
    )

    assert used == variables.keys()
    for variable in variables.values():
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"])
            assert found is not None
            assert found[2] in known[found[1]] | OF_THE_SCRAPE


def test_legends_name_labels_that_the_query_keeps() -> None:
    for path in DASHBOARDS:
        for panel in panels_of(json.loads(path.read_text())):
            for target in panel.get("targets", ()):
                named = set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "")))
                kept = set(re.findall(r"by \(([^)]*)\)", target.get("expr", "")))
                if kept:
                    assert named <= {label.strip() for part in kept for label in part.split(",")}, panel[
                        "title"
                    ]


@pytest.mark.parametrize("rule", alert_rules(), ids=lambda rule: rule["alert"])
def test_every_metric_of_an_alert_exists(rule: dict[str, Any]) -> None:
    assert problems_of(rule["expr"]) == []
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"].keys() == {"summary", "description"}


def test_an_unknown_metric_or_label_would_be_found() -> None:
    assert problems_of("sum(goqueue_no_such_total)") == ["no metric goqueue_no_such_total"]
    assert problems_of('goqueue_broker_topic_count{colour="red"}') == [
        "goqueue_broker_topic_count has no label colour"
    ]
    assert problems_of("sum by (colour) (goqueue_broker_topic_count)") == [
        "nothing here has a label colour to sum by"
    ]


@needs_promtool
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts/goqueue.yml"),
        ("test", "rules", "tests/goqueue_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_finds_nothing_wrong(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["promtool", *arguments], cwd=DEPLOY / "prometheus", capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stdout + done.stderr
