"""Schemathesis tries everything that the OpenAPI document promises, and more.

A module of its own, since its cases are made when it is collected, which takes longer than most tests do.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import positive_data_acceptance

from goqueue.edge.http.app import api_document
from goqueue.edge.http.config import HttpConfig
from tests.doors.http.running_door import RunningDoor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data"), HttpConfig(wait_ms_max=5)) as running:
        running.client.post("/topics", json={"name": "0"})
        yield running


schema = schemathesis.openapi.from_dict(msgspec.json.decode(api_document()))


# A setting's value or a key in base64 can be wrong in ways no schema tells, so a valid request may be
# refused; all other checks hold: no 5xx, only documented statuses, bodies and headers as documented,
# invalid requests refused, undocumented methods answered with 405 and Allow.
@schema.parametrize()
@settings(
    max_examples=10,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_behaves_as_documented(case: schemathesis.Case[Any], running: RunningDoor) -> None:
    case.call_and_validate(base_url=running.url, excluded_checks=[positive_data_acceptance])
