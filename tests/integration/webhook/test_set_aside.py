"""What fails at one object of the webhook's caches, or at one review, affects no other: it is reported, tried again, and heals."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from structlog.testing import capture_logs

from pumice.api import reviews as encoding
from pumice.api.kinds import EVENT, INDEXED_JOB, QUEUE, Kind
from pumice.api.queues import Queue
from pumice.cluster import reading
from pumice.cluster.client import Client
from pumice.cluster.reading import decode
from pumice.plugins import builtin
from pumice.webhook import admission
from pumice.webhook.endpoints import ENDPOINTS
from pumice.webhook.server import StateSource, WebhookWorker
from pumice.webhook.server import reviews as judging
from pumice.webhook.server.lookup import LiveLookup
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.worker import GroupsFile
from pumice.webhook.view import AdmissionView, Snapshot
from tests.integration.webhook.serving import QUICK, Raw, offline, running
from tests.kit.breakage import is_about_bad, pauses_grow
from tests.kit.builders import job, queue
from tests.kit.quick_loop import monotonic
from tests.kit.waiting import until
from tests.unit.cluster.tiny import tiny_api
from tests.unit.webhook.reviewing import request, review

PATH = "/queues/validate"
JSON = {"Content-Type": "application/json"}
OWNER = {
    "apiVersion": INDEXED_JOB.api_version,
    "kind": INDEXED_JOB.kind,
    "spec": {
        "completions": 1,
        "completionMode": "Indexed",
        "template": {
            "metadata": {"annotations": {"pumice.dev/plugins": '{"env": []}'}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
        },
    },
}


class Breakage:
    """A function that raises where its arguments name `bad`, and notes when."""

    def __init__(
        self,
        works: Callable[..., Any],
        is_bad: Callable[..., bool] = lambda *given: is_about_bad(given),
    ) -> None:
        self.broken = True
        self.tries: list[float] = []
        self._works = works
        self._is_bad = is_bad

    def __call__(self, *given: Any, **named: Any) -> Any:
        if self.broken and self._is_bad(*given):
            self.tries.append(monotonic())
            raise ZeroDivisionError("oh")
        return self._works(*given, **named)


def break_decoder(worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch) -> Breakage:
    def is_bad(decoder: Any, raw: Any) -> bool:
        # Of lists and heads, which are decoded before, too, only objects have their type.
        return decoder.type is Queue and b'"bad"' in bytes(raw)

    found = Breakage(decode, is_bad)
    monkeypatch.setattr(reading, "decode", found)
    return found


def break_index(worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch) -> Breakage:
    cache = next(each for each in worker.source.caches if each.kind == QUEUE)
    index = cache._indexes["parent"]
    found = Breakage(index.keys_of)
    monkeypatch.setattr(index, "keys_of", found)
    return found


def break_subscriber(worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch) -> Breakage:
    del monkeypatch
    cache = next(each for each in worker.source.caches if each.kind == QUEUE)
    found = Breakage(lambda *_: None)
    cache.subscribe(found)
    return found


def break_filter(worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch) -> Breakage:
    cache = next(each for each in worker.source.caches if each.kind == INDEXED_JOB)
    assert cache._keep is not None
    found = Breakage(cache._keep)
    monkeypatch.setattr(cache, "_keep", found)
    return found


BREAKING: dict[str, tuple[Callable[..., Breakage], Kind]] = {
    "decoder": (break_decoder, QUEUE),
    "index": (break_index, QUEUE),
    "subscriber": (break_subscriber, QUEUE),
    "filter": (break_filter, INDEXED_JOB),
}


def made(kind: Kind, name: str) -> Raw:
    if kind == QUEUE:
        return queue(name, parent="team")
    return OWNER | {"metadata": {"name": name, "namespace": "default"}}


@pytest.mark.parametrize("place", BREAKING)
async def test_an_object_of_a_cache(
    api: Client,
    client: aiohttp.ClientSession,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    break_it, kind = BREAKING[place]
    namespace = "default" if kind.namespaced else None
    for name in ("root", "default", "team"):
        await api.create(QUEUE, queue(name))
    worker = WebhookWorker(StateSource.of_cluster(api), builtin(), settings=QUICK)
    breakage = break_it(worker, monkeypatch)
    view, sample = worker.source.view, worker.metrics.registry.get_sample_value
    async with running(worker) as address:
        await until(lambda: worker.ready)
        await api.create(kind, made(kind, "bad"), namespace)
        await until(lambda: breakage.tries)
        await api.create(kind, made(kind, "good"), namespace)
        await until(lambda: view.get(kind, "good", namespace or ""))
        if kind == QUEUE:
            await until(lambda: "good" in {each.metadata.name for each in view.children("team")})
        await until(lambda: len(breakage.tries) >= 4)
        assert pauses_grow(breakage.tries[:4], 0.9)
        assert (view.get(kind, "bad", namespace or "") is None) is (place != "subscriber")
        labels = {"kind": kind.kind, "place": place}
        assert (sample("pumice_object_errors_total", labels) or 0) >= 4
        assert sample("pumice_objects_set_aside", {"kind": kind.kind}) == 1
        lines = [each.message for each in caplog.records if each.levelno >= logging.ERROR]
        assert len(lines) == 1
        assert lines[0].startswith(f"{kind.kind} {'default/' if namespace else ''}bad is set aside")

        async def told() -> list[Raw]:
            found: list[Raw] = (await api.list(EVENT))["items"]
            return [each for each in found if each["reason"] == "InternalError"]

        await until(told)
        [event] = await told()
        assert event["involvedObject"]["name"] == "bad"
        assert event["source"]["component"] == "pumice-webhook"
        assert worker.ready
        url = f"http://{address}/jobs/validate"
        body = review(request("/jobs/validate", job(queue="default")))
        async with client.post(url, data=body, headers=JSON) as answer:
            assert (await answer.json())["response"]["allowed"]
        breakage.broken = False
        await until(lambda: view.get(kind, "bad", namespace or ""))
        await until(lambda: sample("pumice_objects_set_aside", {"kind": kind.kind}) == 0)


async def ask(client: aiohttp.ClientSession, address: str, name: str) -> Raw:
    """The response to a review of a queue, whose uid is `uid-NAME`."""
    asked = request(PATH, queue(name, parent=f"{name}-parent"))
    asked["uid"] = f"uid-{name}"
    async with client.post(f"http://{address}{PATH}", data=review(asked), headers=JSON) as answer:
        assert answer.status == 200
        response: Raw = (await answer.json())["response"]
        return response


def break_rule(monkeypatch: pytest.MonkeyPatch) -> Breakage:
    found = Breakage(AdmissionView.queue)
    monkeypatch.setattr(AdmissionView, "queue", lambda *given: found(*given))
    return found


def break_rules(monkeypatch: pytest.MonkeyPatch) -> Breakage:
    endpoint = ENDPOINTS[PATH]
    found = Breakage(endpoint.judge)
    monkeypatch.setitem(ENDPOINTS, PATH, replace(endpoint, judge=found))
    return found


def break_review_decoder(monkeypatch: pytest.MonkeyPatch) -> Breakage:
    endpoint = ENDPOINTS[PATH]
    found = Breakage(endpoint.reviews.decode)

    class Decoder:
        decode: Any = staticmethod(found)

    monkeypatch.setitem(ENDPOINTS, PATH, replace(endpoint, reviews=cast("Any", Decoder())))
    return found


def break_encoder(monkeypatch: pytest.MonkeyPatch) -> Breakage:
    works = encoding.encode

    def is_bad(uid: str, response: encoding.Response) -> bool:
        return "bad" in uid and (response.status is None or response.status.code != 500)

    found = Breakage(works, is_bad)
    monkeypatch.setattr(encoding, "encode", found)
    return found


def break_count(monkeypatch: pytest.MonkeyPatch) -> Breakage:
    found = Breakage(ServerMetrics.answered)
    monkeypatch.setattr(ServerMetrics, "answered", lambda *given: found(*given))
    return found


def break_log(monkeypatch: pytest.MonkeyPatch) -> Breakage:
    found = Breakage(judging._log)
    monkeypatch.setattr(judging, "_log", found)
    return found


REVIEWS: dict[str, tuple[Callable[[pytest.MonkeyPatch], Breakage], bool]] = {
    "a rule": (break_rule, False),
    "all rules": (break_rules, False),
    "the decoder of reviews": (break_review_decoder, False),
    "the encoder": (break_encoder, False),
    "the metrics": (break_count, True),
    "the log": (break_log, True),
}


@pytest.mark.parametrize("place", REVIEWS)
async def test_a_review_is_answered_whatever_fails_at_it(
    client: aiohttp.ClientSession,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Refused under its uid if it was not judged; who submitted the object tries it again."""
    break_it, judged = REVIEWS[place]
    breakage = break_it(monkeypatch)
    known = ["default"] if place == "the log" else ["default", "good-parent", "bad-parent"]
    worker = offline(Snapshot.of([queue(name) for name in known]))
    is_fine = len(known) > 1
    async with running(worker) as address:
        with capture_logs() as logged:
            for _ in range(3):
                response = await ask(client, address, "bad")
                assert response["uid"] == "uid-bad"
                assert response["allowed"] is (judged and is_fine)
                if not judged:
                    assert "ZeroDivisionError: oh" in response["status"]["message"]
                response = await ask(client, address, "good")
                assert response["uid"] == "uid-good"
                assert response["allowed"] is is_fine
        assert len(breakage.tries) >= 3
        code = "QUEUES-VALIDATE"
        crashes = worker.metrics.registry.get_sample_value(
            "pumice_admission_rule_crashes_total", {"rule": code}
        )
        told = [each for each in logged if each["log_level"] == "error"]
        places = {(each["rule"], each["exc_info"].__traceback__.tb_next.tb_lineno) for each in told}
        assert len(told) == len(places) == (1 if place != "a rule" else len(places))
        assert {each["uid"] for each in told} == {"uid-bad"}
        if place != "a rule":
            assert crashes is not None
            assert crashes >= 1
        breakage.broken = False
        response = await ask(client, address, "bad")
        assert response["allowed"] is is_fine


async def test_an_exception_may_say_anything(
    client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("half of a pair: \ud800")

    monkeypatch.setattr(admission.Admission, "answer", fail)
    async with running(offline()) as address:
        response = await ask(client, address, "bad")
    assert response["uid"] == "uid-bad"
    assert not response["allowed"]


async def test_the_lookup_of_a_queue(
    api: Client, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.create(QUEUE, queue("default"))
    breakage = Breakage(LiveLookup.find, lambda _, keys, *__: (QUEUE, "", "bad") in keys)
    monkeypatch.setattr(LiveLookup, "find", lambda *given, **named: breakage(*given, **named))
    worker = WebhookWorker(StateSource.of_cluster(api), builtin(), settings=QUICK)
    async with running(worker) as address:
        await until(lambda: worker.ready)

        async def judged(name: str) -> Raw:
            asked = request("/jobs/validate", job(queue=name))
            asked["uid"] = f"uid-{name}"
            url = f"http://{address}/jobs/validate"
            async with client.post(url, data=review(asked), headers=JSON) as answer:
                found: Raw = (await answer.json())["response"]
                return found

        response = await judged("bad")
        assert response["uid"] == "uid-bad"
        assert "ZeroDivisionError: oh" in response["status"]["message"]
        assert (await judged("default"))["allowed"]
        assert len(breakage.tries) == 1


async def test_a_queue_in_the_list_of_all(caplog: pytest.LogCaptureFixture) -> None:
    async with tiny_api() as server, Client.connect(server=server.url) as api:
        for each in (queue("team"), queue("bad") | {"spec": {"weight": "much"}}, queue("last")):
            await server.put(QUEUE.collection(), each)
        lookup = LiveLookup(api, ServerMetrics())
        found = await lookup.find([(QUEUE, "", "team")], 10.0, tree=True)
    assert sorted(name for _, _, name in found) == ["last", "team"]
    (line,) = caplog.messages
    assert line.startswith("Queue bad is set aside for this review: Expected")


async def test_a_file_of_groups_that_fails_leaves_the_groups_in_effect(
    client: aiohttp.ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "volcano-admission.conf"
    conf.write_text("resourceGroups: []\n")
    breakage = Breakage(GroupsFile.take)
    monkeypatch.setattr(GroupsFile, "take", lambda self, raw: breakage(self, raw))
    worker = offline(Snapshot.of([queue("good-parent")]), conf=conf)
    assert worker._groups is not None
    async with running(worker) as address:
        conf.write_text("resourceGroups: []  # bad\n")
        await until(lambda: "ZeroDivisionError" in str(worker._groups and worker._groups.problem))
        assert (await ask(client, address, "good"))["allowed"]
        assert worker.ready
        conf.write_text("resourceGroups: []  # again\n")
        await until(lambda: worker._groups is not None and worker._groups.problem is None)
    assert len(breakage.tries) == 1
