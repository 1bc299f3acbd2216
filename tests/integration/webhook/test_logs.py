"""Whatever is not admitted is in the log, with why."""

import ssl
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
import structlog

from pumice.webhook.server import FileCertificates
from tests.integration.webhook.raw_http import post, talk
from tests.integration.webhook.serving import Pair, offline, running
from tests.kit.builders import job
from tests.kit.waiting import until
from tests.unit.webhook.reviewing import UID, request, review

JSON = {"Content-Type": "application/json"}
PATH = "/jobs/validate"
REVIEW = review(request(PATH, job()))
HALF = post(PATH, REVIEW[:100], length=len(REVIEW))


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    """What is logged."""
    with structlog.testing.capture_logs() as found:
        yield found


@pytest.mark.parametrize(
    ("body", "uid", "message"),
    [
        (b"{", "", "this is no AdmissionReview: "),
        (REVIEW.replace(b'"replicas": 1', b'"replicas": NaN'), UID, "this is no AdmissionReview: "),
        (review(request(PATH, None)), UID, "a review of operation CREATE must have an object"),
        (review(request("/queues/validate", job())), UID, 'expected resource "jobs" of "batch.v'),
    ],
    ids=["no JSON", "NaN", "no object", "another kind"],
)
async def test_a_review_that_cannot_be_answered_is_logged_with_why(
    url: str, client: aiohttp.ClientSession, logged: list[Any], body: bytes, uid: str, message: str
) -> None:
    async with client.post(url + PATH, data=body, headers=JSON):
        pass
    (line,) = (each for each in logged if each["event"] == "errored")
    assert (line["path"], line["uid"], line["status"]) == (PATH, uid, 400)
    assert line["message"].startswith(message)


async def test_a_review_that_is_denied_is_logged_with_its_rules(
    url: str, client: aiohttp.ClientSession, logged: list[Any]
) -> None:
    body = review(request(PATH, job(queue="gone")))
    async with client.post(url + PATH, data=body, headers=JSON):
        pass
    (line,) = logged
    assert (line["event"], line["uid"], line["rules"]) == ("denied", UID, ["JOB-QUEUE-MISSING"])
    assert "message" not in line


async def test_a_review_that_is_admitted_is_logged_where_that_is_asked_for(
    url: str, client: aiohttp.ClientSession, logged: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    for level in ("INFO", "DEBUG"):
        caplog.set_level(level, "pumice.webhook")
        await client.post(url + PATH, data=REVIEW, headers=JSON)
    (line,) = logged
    assert (line["event"], line["path"], line["uid"]) == ("reviewed", PATH, UID)


async def test_what_is_turned_away_is_logged_with_status_and_why(
    url: str, client: aiohttp.ClientSession, logged: list[Any]
) -> None:
    await client.get(f"{url}/nowhere")
    await client.get(url + PATH)
    await talk(url.removeprefix("http://"), [post(PATH, b"", length=9_000_000)], replies=1)
    await client.post(url + PATH, data=REVIEW, headers={"Content-Type": "text/plain"})
    assert [(each["event"], each["path"], each["status"]) for each in logged] == [
        ("turned away", "other", 404),
        ("turned away", PATH, 405),
        ("turned away", PATH, 413),
        ("turned away", PATH, 415),
    ]
    assert logged[0]["message"].startswith("there is nothing at /nowhere, known are /jobs/mutate")


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
async def test_a_client_that_breaks_off_is_logged_and_counted(
    pair: Pair,
    logged: list[Any],
    *,
    encrypted: bool,
) -> None:
    files = FileCertificates(pair.certificate, pair.key) if encrypted else None
    tls: ssl.SSLContext | None = pair.trusting() if encrypted else None
    worker = offline(certificates=files)
    labels = {"path": PATH, "operation": "other", "outcome": "errored", "code": "400"}

    def counted() -> float | None:
        return worker.metrics.registry.get_sample_value("pumice_admission_reviews_total", labels)

    async with running(worker) as address:
        await talk(address, [HALF, b""], replies=0, tls=tls)
        await until(lambda: counted() == 1)
        await until(lambda: not worker.listener.connections)
    assert counted() == 1
    said = [each["message"] for each in logged if each["event"] == "turned away"]
    assert len(said) == 1
    assert "connection" in said[0]
