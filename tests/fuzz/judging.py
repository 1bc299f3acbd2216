"""What every answer must be, whatever was asked."""

import base64
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.fuzz.corpus import Real, corpus
from tests.fuzz.mutations import Mutator

DEADLINE_SECONDS = 2.0
"""Of a processor, for one answer: what else the machine does takes none of it. The API server waits for ten."""

LOST = 0.03
"""Share of reviews that are sent to an endpoint of another kind."""


class _Status(msgspec.Struct, forbid_unknown_fields=True):
    code: int
    status: str
    reason: str
    message: str
    details: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class _Response(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    uid: str
    allowed: bool
    status: _Status | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None
    audit_annotations: dict[str, str] | None = None


class _Review(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    response: _Response


_CALLED_UID = re.compile(rb'"uid"\s*:\s*("(?:[^"\\]|\\.)*")')
_answers = msgspec.json.Decoder(_Review)


@dataclass
class Tally:
    """What became of many reviews.

    Attributes:
        outcomes: How many were answered how: `allowed`, `patched`, or the code of the refusal.
        rules: How often each rule refused.
        slowest: Seconds of the slowest answer, and which it was; without a server, seconds of a processor.
        crashes: How often which rule raised what; refusing then is proper, raising is not.
        failures: What was wrong, each with what it takes to see it again.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = 0.0, ""
    crashes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __iadd__(self, other: "Tally") -> "Tally":
        """Take in another one."""
        self.outcomes += other.outcomes
        self.rules += other.rules
        self.slowest = max(self.slowest, other.slowest)
        self.crashes += other.crashes
        self.failures += other.failures
        return self


@dataclass(frozen=True)
class Mutated:
    """A mutated review.

    Attributes:
        name: What it takes to see it again.
        origin: The real one that it was made of.
        path: Endpoint that it is sent to.
        body: What is sent.
    """

    name: str
    origin: Real
    path: str
    body: bytes

    def failed(self, error: Exception) -> str:
        """A failure, with what it takes to see it again."""
        return f"{self.name}: {type(error).__name__}: {error}\n{self.body[:4000]!r}"


def mutated(seed: str, count: int) -> Iterator[Mutated]:
    """Make mutated reviews.

    Args:
        seed: The same seed makes the same reviews.
        count: How many.
    """
    real = corpus()
    mutator = Mutator(seed, [each.body for each in real])
    paths = sorted({each.path for each in real})
    for number in range(count):
        origin = real[mutator.pick(len(real))]
        body = mutator.mutated(origin.body)
        path = origin.path
        if mutator.pick(1000) < 1000 * LOST:
            path = paths[mutator.pick(len(paths))]
        yield Mutated(f"seed {seed} number {number} ({origin.name}) to {path}", origin, path, body)


def fuzzed(seed: str, count: int) -> Tally:
    """Have mutated reviews answered without a server, and look at each answer.

    Args:
        seed: The same seed makes the same reviews.
        count: How many.
    """
    tally = Tally()
    for review in mutated(seed, count):
        origin = review.origin
        try:
            started = time.process_time()
            answer = origin.admission.answer(review.path, review.body)
            seconds = time.process_time() - started
            tally.slowest = max(tally.slowest, (seconds, review.name))
            tally.outcomes[checked(review.body, answer.body)] += 1
            tally.rules.update(answer.codes)
            assert seconds < DEADLINE_SECONDS, f"took {seconds:.3f} s of a processor"
        except Exception as error:
            tally.failures.append(review.failed(error))
        while origin.crashes:
            crash = origin.crashes.pop()
            tally.crashes[f"{crash.code} {crash.error!r}, first at {review.name}"] += 1
    return tally


def checked(body: bytes, answer: bytes) -> str:
    """Look over an answer; what became of the review."""
    review = _answers.decode(answer)
    response = review.response
    assert (review.kind, review.api_version) == ("AdmissionReview", "admission.k8s.io/v1")
    assert response.uid in _uids(body), f"the answer has another uid: {response.uid}"
    if response.allowed:
        assert response.status is None
        if response.patch is None:
            return "allowed"
        assert response.patch_type == "JSONPatch"
        operations = msgspec.json.decode(base64.b64decode(response.patch, validate=True))
        assert operations
        assert all(each["op"] in ("add", "remove", "replace") for each in operations)
        return "patched"
    assert response.patch is None
    status = response.status
    assert status is not None
    assert 400 <= status.code < 500, f"code {status.code}: {status.message}"
    assert status.message
    return str(status.code)


def _uids(body: bytes) -> list[str]:
    """The uid of a review, decoded as anything, not as a review.

    Where it is no JSON as a whole, what is broken may be a part that nobody reads; then the uid may be
    whatever is called so.
    """
    try:
        review = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return ["", *_whatever_is_called_so(body)]
    request = review.get("request") if isinstance(review, dict) else None
    uid = request.get("uid") if isinstance(request, dict) else None
    return [uid if isinstance(uid, str) else ""]


def _whatever_is_called_so(body: bytes) -> Iterator[str]:
    for text in _CALLED_UID.findall(body):
        with suppress(ValueError):
            yield msgspec.json.decode(text, type=str)
