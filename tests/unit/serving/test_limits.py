"""Connections that are closed because of the limit are counted, and logged at most once a minute."""

import logging
import resource

import pytest

from pumice.serving.connections import CrowdLog, affordable


def test_closed_connections_are_counted() -> None:
    reasons: list[str] = []
    log = CrowdLog(2, reasons.append)
    for _ in range(2):
        log.note()
    assert reasons == ["crowded", "crowded"]


def test_the_log_says_once_a_minute_how_many_were_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    now = 0.0
    log = CrowdLog(1, lambda _: None, seconds=lambda: now)
    for now in (0.0, 1.0, 59.0, 60.0):  # noqa: B007 # the clock reads it
        log.note()
    assert [record.args for record in caplog.records] == [(1, 1), (1, 3)]


def test_no_more_connections_than_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, limit in ((200, 68), (50, 1), (100_000, 1000), (resource.RLIM_INFINITY, 1000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert affordable(1000, 2) == limit
