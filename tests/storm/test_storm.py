"""A short storm over a broker that is broken on purpose finds out; a good one is run by `make storm`."""

from pathlib import Path

import pytest

from tests.storm import broken_broker
from tests.storm.kills import storm
from tests.storm.record import Kind, Record


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_broker_that_forgets_what_was_acknowledged_is_caught(tmp_path: Path) -> None:
    record = Record()

    storm(tmp_path, record, seed=3, minutes=0.2, only="QueueWorkers", program=broken_broker.__name__)

    assert Kind.RESURRECTED in {violation.kind for violation in record.violations}
