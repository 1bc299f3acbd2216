"""Who uses a release while something is done to it, and what can be seen of the release from outside."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from pumice.webhook.registrations import TIMEOUT_SECONDS
from tests.kit.builders import job, task
from tests.kit.tables import documents
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import CHART, LABEL, NAMESPACE, RELEASE

__all__ = [
    "BATCH",
    "CONFIGURATIONS",
    "LABEL",
    "REGISTRATION",
    "Users",
    "bare",
    "configurations",
    "deleted",
    "manifests",
    "trusted",
    "upgrade",
]

BATCH = "/apis/batch.volcano.sh/v1alpha1/namespaces"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
SOME = 10
"""Answers before, and after, what is done to a release."""

CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def bare(name: str) -> dict[str, Any]:
    """A Job that lacks what admission fills in."""
    manifest = job(name, [task("", 1, annotations={"pumice.dev/run-duration": "1s"})])
    del manifest["metadata"]["namespace"]
    return manifest


class Users:
    """Who creates Jobs, by dry run, over and over.

    Attributes:
        admitted: How many were admitted while they were busy.
        refused: What the others were told.
        undefaulted: How many of those admitted lacked what admission fills in.
        slowest: The longest answer, in seconds.
    """

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = f"{BATCH}/{namespace}/jobs?dryRun=All"
        self.forget()

    def forget(self) -> None:
        """Begin to count again."""
        self.admitted = self.undefaulted = 0
        self.refused: list[str] = []
        self.slowest = 0.0

    def admits(self) -> bool:
        """Whether a Job is admitted by now."""
        began = time.monotonic()
        status, answer = self._plane.request("POST", self._path, bare("asking"))
        self.slowest = max(self.slowest, time.monotonic() - began)
        if status != 201:
            self.refused.append(f"{status} {answer.get('message')}")
            return False
        self.undefaulted += answer["spec"]["tasks"][0].get("name") != "default0"
        return True

    def defaulted(self) -> bool:
        """Whether a Job is admitted, and gets its defaults, by now."""
        before = self.undefaulted
        return self.admits() and self.undefaulted == before

    @contextmanager
    def busy(self) -> Iterator[None]:
        """They go on for as long as the block lasts, with some answers before it and after it."""
        over = threading.Event()
        worker = threading.Thread(target=self._work, args=(over,))
        self.forget()
        worker.start()
        try:
            self._wait_for_answers()
            yield
            time.sleep(0.5)
            self._wait_for_answers()
        finally:
            over.set()
            worker.join()

    def _work(self, over: threading.Event) -> None:
        while not over.wait(0.05):
            self.admitted += self.admits()

    def _wait_for_answers(self) -> None:
        wanted = self.admitted + len(self.refused) + SOME
        wait_until(lambda: self.admitted + len(self.refused) >= wanted, "some answers", 60)

    def noticed_nothing(self) -> None:
        """Assert that all of them were admitted, and that nobody waited for a webhook that is not there."""
        assert self.refused == [], "\n".join(self.refused)
        assert self.slowest < TIMEOUT_SECONDS


def upgrade(plane: ControlPlane, *settings: str) -> None:
    """Upgrade the release; settings as `--set` takes them."""
    sets = [word for each in settings for word in ("--set", each)]
    arguments = ("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", *sets)
    plane.helm(*arguments, "--disable-openapi-validation", namespace=NAMESPACE)


def configurations(plane: ControlPlane) -> list[dict[str, Any]]:
    """The webhook configurations of the release."""
    return [
        each
        for kind in CONFIGURATIONS
        for each in plane.request("GET", f"{REGISTRATION}/{kind}?labelSelector={LABEL}")[1]["items"]
    ]


def trusted(plane: ControlPlane) -> bool:
    """Whether every webhook is called with an authority."""
    found = configurations(plane)
    return len(found) >= 8 and all(
        each.get("webhooks")
        and all(webhook["clientConfig"].get("caBundle") for webhook in each["webhooks"])
        for each in found
    )


def manifests(plane: ControlPlane, *kinds: str) -> str:
    """What the release has rendered, of these kinds only if some are named; as a GitOps tool holds it."""
    text = plane.helm("get", "manifest", RELEASE, namespace=NAMESPACE).stdout
    found = documents(text)
    return yaml.safe_dump_all([each for each in found if not kinds or each["kind"] in kinds])


def deleted(plane: ControlPlane, path: str, since: str) -> list[int]:
    """Moments, as revisions of the store, at which objects of the release went since then."""
    query = f"watch=1&resourceVersion={since}&timeoutSeconds=1&labelSelector={LABEL}"
    answer = plane.request("GET", f"{path}?{query}")[1]
    # One event alone is read as the answer, several are no JSON.
    lines = [json.dumps(answer)] if "type" in answer else answer["message"].splitlines()
    events = [json.loads(line) for line in lines if line]
    gone = [each["object"] for each in events if each["type"] == "DELETED"]
    return [int(each["metadata"]["resourceVersion"]) for each in gone]
