"""Simulated brokers meet many faults and log each: that is no news here."""

import logging

import pytest


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="goqueue")
