"""Answers of admission: the response for the API server, and the outcome for metrics and logs."""

from typing import Any, Literal

import msgspec

from pumice.api import reviews
from pumice.api.fields import FieldError
from pumice.api.kinds import Kind
from pumice.api.reviews import Response
from pumice.plugins.other_owners import OwnerKey
from pumice.webhook.questions import Question
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.catalogue import by_code

Outcome = Literal["allowed", "patched", "denied", "errored"]


class Answer(msgspec.Struct, frozen=True):
    """An answered review.

    Attributes:
        body: The AdmissionReview to send back.
        outcome: The result, as metrics name it.
        question: What was asked; of a review that could not be read, only its uid.
        codes: Rules that refused, each once.
        warned: Rules that warned, each once.
        tolerated: Those of them that refuse by default.
        missing_queues: Queues that were looked up and do not exist.
        missing_owners: Owners of the pod that were looked up and do not exist.
        malformed: HTTP status if the review itself could not be read, otherwise 0.
        status: Code of the response: 200 if the object is admitted, otherwise that of the refusal.
        problem: Why the review could not be decided; empty if it was.
    """

    body: bytes
    outcome: Outcome
    question: Question[Any]
    codes: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    missing_queues: tuple[str, ...] = ()
    missing_owners: tuple[OwnerKey, ...] = ()
    malformed: int = 0
    status: int = 200
    problem: str = ""


def responded(kind: Kind, name: str, case: Case) -> Response:
    """The answer for a checked case."""
    warnings, audit = _warnings(case.warnings) if case.warnings else ((), None)
    if case.errors:
        errors = list(dict.fromkeys(case.errors))
        return reviews.denied(errors, warnings, audit, name=name, kind=kind.kind, group=kind.group)
    return reviews.patched(case.patch.operations, warnings, audit)


def answered(question: Question[Any], response: Response, case: Case) -> Answer:
    """Encode a response, and add what the server needs for metrics and logs."""
    codes: tuple[str, ...] = ()
    status = response.status
    outcome: Outcome
    if response.allowed:
        outcome = "allowed" if response.patch is None else "patched"
    elif case.errors:
        outcome = "denied"
        codes = _codes(case.errors)
    else:
        outcome = "errored"
    warned = _codes(case.warnings) if case.warnings else ()
    return Answer(
        reviews.encode(question.uid, response),
        outcome,
        question,
        codes=codes,
        warned=warned,
        tolerated=_tolerated(warned) if warned else (),
        missing_queues=tuple(case.missing_queues),
        missing_owners=tuple(case.missing_owners),
        status=status.code if status is not None else 200,
        problem=status.message if status is not None and outcome == "errored" else "",
    )


def malformed(
    uid: str, status: int, problem: str, reason: str = "BadRequest", *, shown: bool = False
) -> Answer:
    """The answer to a body that is not a review, or cannot be judged.

    With `shown` it is a review like others, whose message the user sees; the API server does not show that of an HTTP
    error.
    """
    response = reviews.errored(status, problem, reason=reason)
    return Answer(
        reviews.encode(uid, response),
        "errored",
        Question(uid=uid),
        malformed=0 if shown else status,
        status=status,
        problem=problem,
    )


def _warnings(found: list[FieldError]) -> tuple[list[str], dict[str, str]]:
    """Warnings for kubectl, and annotations for the audit log: problems that stricter settings would refuse."""
    warned = _codes(found)
    audit = {"warned": ",".join(warned)}
    if tolerated := _tolerated(warned):
        audit["tolerated"] = ",".join(tolerated)
    return reviews.fitting(found), audit


def _codes(found: list[FieldError]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.code for each in found))


def _tolerated(warned: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        code for code in warned if (rule := by_code(code)) is not None and rule.level == "enforce"
    )
