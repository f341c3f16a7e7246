"""Settings of the trace export: which exporters, where to, and what is refused."""

import pytest

from goqueue.node.config import ConfigProblems, load_config
from goqueue.node.tracing.config import TraceExportConfig, endpoint, exporters, headers


def problem(**variables: str) -> str:
    with pytest.raises(ConfigProblems) as refusal:
        load_config([], {f"GOQUEUE_TRACING_{name}": value for name, value in variables.items()})
    (told,) = refusal.value.problems
    return told


def test_without_a_word_nothing_is_exported() -> None:
    assert load_config([], {}).trace_export == TraceExportConfig(exporters=())


def test_all_settings_reach_the_export() -> None:
    config = load_config(
        ["--tracing-export=file, otlp-http"],
        {
            "GOQUEUE_TRACING_EXPORT_ENDPOINT": "https://tempo.example:4318",
            "GOQUEUE_TRACING_EXPORT_HEADERS": "X-Scope-OrgID=shop, authorization=Basic YTpi==",
            "GOQUEUE_TRACING_EXPORT_INTERVAL_MS": "500",
            "GOQUEUE_TRACING_EXPORT_SPANS_PER_SECOND": "250",
            "GOQUEUE_TRACING_EXPORT_FILES": "3",
        },
    )

    assert config.trace_export == TraceExportConfig(
        exporters=("file", "otlp-http"),
        endpoint="https://tempo.example:4318",
        headers={"X-Scope-OrgID": "shop", "authorization": "Basic YTpi=="},
        interval_ms=500,
        spans_per_second=250,
        files_max=3,
    )
    assert config.trace_export.budget == 125


@pytest.mark.parametrize("text", ["", "none", "off", " , "])
def test_no_exporter_has_many_spellings(text: str) -> None:
    assert exporters(text) == ()


def test_an_exporter_named_twice_counts_once() -> None:
    assert exporters("file,FILE, stdout") == ("file", "stdout")


def test_an_unknown_exporter_is_refused_with_those_there_are() -> None:
    assert "use file, stdout, otlp-http, otlp-grpc" in problem(EXPORT="zipkin")


@pytest.mark.parametrize(
    "text", ["collector:4318", "ftp://collector", "http://", "http://host:x", "http://[::1"]
)
def test_an_endpoint_is_a_url(text: str) -> None:
    with pytest.raises(ValueError, match="is not a URL"):
        endpoint(text)


@pytest.mark.parametrize("text", ["secret", "=secret", "a b=secret", "key=secré\n"])
def test_wrong_headers_are_refused_without_telling_their_values(text: str) -> None:
    with pytest.raises(ValueError) as refusal:
        headers(text)
    assert "secr" not in str(refusal.value)


def test_two_protocols_cannot_share_an_endpoint() -> None:
    told = problem(EXPORT="otlp-http,otlp-grpc", EXPORT_ENDPOINT="http://collector:4318")

    assert "cannot share an endpoint" in told


def test_an_interval_may_not_bring_more_than_an_exporter_holds() -> None:
    told = problem(EXPORT_SPANS_PER_SECOND="20000", EXPORT_INTERVAL_MS="10000")

    assert "more spans in an interval" in told


@pytest.mark.parametrize("word", ["jaeger", "Jaeger-UDP"])
def test_a_wish_for_jaegers_own_protocol_is_refused_with_what_to_use_instead(word: str) -> None:
    with pytest.raises(ValueError, match="otlp-grpc"):
        exporters(f"file,{word}")
