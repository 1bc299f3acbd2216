"""Whatever is sent to whatever path gets a proper answer."""

import asyncio
import gzip
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.server import FileCertificates
from tests.integration.webhook.serving import QUICK, Pair, offline, running, session
from tests.kit.builders import job, task
from tests.unit.webhook.reviewing import UID, request, review, rows

JSON = {"Content-Type": "application/json"}
REVIEW = review(request("/jobs/validate", job()))


def first_rows() -> list[Any]:
    """The first row of every table, and its first refusal."""
    chosen: dict[tuple[str, bool], Any] = {}
    for row in rows():
        chosen.setdefault((row.name.split(":")[0], "codes" in row.expected), row)
    return list(chosen.values())


@pytest.mark.parametrize("row", first_rows(), ids=lambda row: row.name)
async def test_a_server_answers_as_admission_does(row: Any, tmp_path: Path) -> None:
    admission = row.admission()
    conf = tmp_path / "volcano-admission.conf"
    conf.write_bytes(row.conf)
    worker = offline(admission.view, admission=row.settings, conf=conf)
    async with running(worker) as address, session() as client:
        answer = await client.post(f"http://{address}{row.path}", data=row.body, headers=JSON)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/json"
        assert await answer.read() == admission.review(row.path, row.body)


async def test_reviews_over_tls_share_a_connection(pair: Pair) -> None:
    worker = offline(certificates=FileCertificates(pair.certificate, pair.key))
    async with running(worker) as address, session(pair.trusting()) as client:
        made: list[object] = []
        for _ in range(3):
            async with client.post(
                f"https://{address}/jobs/validate?timeout=5s", data=REVIEW, headers=JSON
            ) as answer:
                assert (await answer.json())["response"] == {"uid": UID, "allowed": True}
                assert "Connection" not in answer.headers
        connector = client.connector
        assert connector is not None
        made.extend(each for pool in connector._conns.values() for each in pool)
        assert len(made) == 1
        assert worker.ready


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
async def test_json_is_taken(url: str, client: aiohttp.ClientSession, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    async with client.post(f"{url}/jobs/validate", data=REVIEW, headers=headers) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/yaml", ""])
async def test_another_content_type_is_refused(
    url: str, client: aiohttp.ClientSession, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    async with client.post(f"{url}/jobs/validate", data=REVIEW, headers=headers) as answer:
        status = await answer.json()
        assert answer.status == 415
        assert (status["kind"], status["code"]) == ("Status", 415)
        assert status["message"] == (
            f'expected Content-Type "application/json", found "{content_type}"'
        )


async def test_a_word_of_advice_behind_the_path_changes_nothing(
    url: str, client: aiohttp.ClientSession
) -> None:
    """The API server shows the address to whom it could not get an answer for."""
    for advice in ("/if-this-fails", "/if-this-fails-run/kubectl-x--n-y?timeout=5s"):
        path = f"{url}/jobs/validate{advice}"
        async with client.post(path, data=REVIEW, headers=JSON) as answer:
            assert (await answer.json())["response"] == {"uid": UID, "allowed": True}
        async with client.get(path) as answer:
            assert answer.status == 405
    async with client.get(f"{url}/metrics") as answer:
        assert "if-this-fails" not in await answer.text()
    async with client.post(
        f"{url}/jobs/nothing/if-this-fails", data=REVIEW, headers=JSON
    ) as answer:
        assert answer.status == 404


BROKEN = {
    "nothing": (b"", "this is no AdmissionReview"),
    "no JSON": (b"{", "this is no AdmissionReview"),
    "no UTF-8": (b'{"kind":"\xff"}', "this is no AdmissionReview"),
    "a list": (b"[]", "this is no AdmissionReview"),
    "nesting without end": (b"[" * 100_000, "this is no AdmissionReview"),
    "another kind": (b'{"kind":"Pod"}', 'expected kind "AdmissionReview"'),
    "an old version": (
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u"}}',
        'found "AdmissionReview" of "admission.k8s.io/v1beta1"',
    ),
    "no request": (
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        "the AdmissionReview has no request",
    ),
}


@pytest.mark.parametrize(("body", "problem"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("path", [each.path for each in REGISTRATIONS])
async def test_what_is_no_review_gets_one_that_says_so(
    url: str, client: aiohttp.ClientSession, path: str, body: bytes, problem: str
) -> None:
    async with client.post(url + path, data=body, headers=JSON) as answer:
        assert answer.status == 400
        found = await answer.json()
    assert (found["kind"], found["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    response = found["response"]
    assert not response["allowed"]
    assert response["status"]["code"] == 400
    assert problem in response["status"]["message"]
    assert response["uid"] == ("u" if b'"u"' in body else "")


@pytest.mark.parametrize("path", ["/readyz", "/metrics", "/nowhere", "/jobs/validate"])
async def test_no_response_shows_which_versions_answer(
    url: str, client: aiohttp.ClientSession, path: str
) -> None:
    async with client.get(url + path) as answer:
        assert answer.headers["Server"] == "pumice"


async def test_another_path_is_not_found(url: str, client: aiohttp.ClientSession) -> None:
    async with client.post(f"{url}/jobs/mutat", data=REVIEW, headers=JSON) as answer:
        assert answer.status == 404
        status = await answer.json()
        assert status["reason"] == "NotFound"
        assert "/jobs/mutate" in status["message"]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/jobs/validate", "POST"),
        ("PUT", "/pods/mutate", "POST"),
        ("POST", "/readyz", "GET, HEAD"),
    ],
)
async def test_another_method_is_not_allowed(
    url: str, client: aiohttp.ClientSession, method: str, path: str, allow: str
) -> None:
    async with client.request(method, url + path) as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == allow
        assert (await answer.json())["reason"] == "MethodNotAllowed"


async def pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 1024):
        yield b"x" * 1024


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_is_too_large_is_refused(
    client: aiohttp.ClientSession, *, chunked: bool
) -> None:
    settings = replace(QUICK, body_limit=64 * 1024)
    async with running(offline(settings=settings)) as address:
        data = pieces(100 * 1024) if chunked else b"x" * 100 * 1024
        async with client.post(f"http://{address}/jobs/mutate", data=data, headers=JSON) as answer:
            assert answer.status == 413
            assert "65536 bytes" in (await answer.json())["message"]
        async with client.post(
            f"http://{address}/jobs/validate", data=REVIEW, headers=JSON
        ) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("path", ["/jobs/validate", "/jobs/mutate"])
async def test_an_update_of_the_largest_object_there_can_be_is_judged(
    url: str, client: aiohttp.ClientSession, path: str
) -> None:
    """The API server takes no body of more than 3 MiB, and sends the stored object along with the new."""
    old = job(annotations={"note": "x" * (3 * 2**20 - 500)})
    new = job(annotations={"note": "y" * (3 * 2**20 - 500)}, minAvailable=9)
    assert 3 * 2**20 - 500 < len(json.dumps(new)) <= 3 * 2**20
    data = review(request(path, new, "UPDATE", old))
    async with client.post(f"{url}{path}", data=io.BytesIO(data), headers=JSON) as answer:
        assert answer.status == 200
        response = (await answer.json())["response"]
    if path == "/jobs/validate":
        assert "[JOB-MINAVAIL-TOTAL]" in response["status"]["message"]
    else:
        assert response["allowed"]


async def test_a_body_in_pieces_is_put_together(url: str, client: aiohttp.ClientSession) -> None:
    main = {"name": "main", "image": "busybox", "args": ["x" * 1_000_000]}
    big = review(request("/jobs/validate", job(tasks=[task(spec={"containers": [main]})])))

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(big), 100_000):
            yield big[start : start + 100_000]

    async with client.post(f"{url}/jobs/validate", data=parts(), headers=JSON) as answer:
        assert (await answer.json())["response"]["allowed"]


async def test_a_client_that_stops_in_the_middle_does_not_block_others(
    url: str, client: aiohttp.ClientSession
) -> None:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /jobs/validate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000\r\n\r\n{"
    )
    await writer.drain()
    async with client.post(f"{url}/jobs/validate", data=REVIEW, headers=JSON) as answer:
        assert answer.status == 200
    writer.close()
    await writer.wait_closed()
    async with client.post(f"{url}/jobs/validate", data=REVIEW, headers=JSON) as answer:
        assert answer.status == 200
    assert reader is not None


async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    settings = replace(QUICK, read_seconds=0.05)
    async with running(offline(settings=settings)) as address:
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /jobs/validate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        end = b"had not arrived whole after 0.05 s"
        answer = await asyncio.wait_for(reader.readuntil(end), 20)
        assert answer.startswith(b"HTTP/1.1 408 ")
        writer.close()
        await writer.wait_closed()


async def test_a_body_that_is_encoded_is_refused(url: str, client: aiohttp.ClientSession) -> None:
    headers = JSON | {"Content-Encoding": "gzip"}
    async with client.post(
        f"{url}/jobs/validate", data=gzip.compress(REVIEW), headers=headers
    ) as answer:
        status = await answer.json()
        assert (answer.status, status["reason"]) == (415, "UnsupportedMediaType")
        assert status["message"] == 'expected no Content-Encoding, found "gzip"'
        assert answer.headers["Accept-Encoding"] == "identity"
    async with client.post(f"{url}/jobs/validate", data=REVIEW, headers=JSON) as again:
        assert again.status == 200


async def test_many_reviews_at_once(url: str, client: aiohttp.ClientSession) -> None:
    async def post(number: int) -> str:
        asked = request("/jobs/validate", job()) | {"uid": f"u{number}"}
        async with client.post(f"{url}/jobs/validate", data=review(asked), headers=JSON) as answer:
            uid: str = json.loads(await answer.read())["response"]["uid"]
            return uid

    found = await asyncio.gather(*(post(number) for number in range(100)))
    assert found == [f"u{number}" for number in range(100)]
