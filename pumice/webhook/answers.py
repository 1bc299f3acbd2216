"""Answers: what became of a question, for the API server and for its server's metrics and logs."""

from dataclasses import dataclass
from typing import Any, Literal

from pumice.api import reviews
from pumice.api.fields import FieldError
from pumice.api.kinds import Kind
from pumice.api.reviews import Response
from pumice.webhook.questions import Question
from pumice.webhook.rules.case import Case

__all__ = ["Answer", "Outcome", "answered", "malformed", "responded"]

Outcome = Literal["allowed", "patched", "denied", "errored"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answered review.

    Attributes:
        body: The AdmissionReview to send back.
        outcome: What became of it.
        operation: Operation under review; empty when it could not be read.
        uid: Of the review.
        codes: Rules that refused, each once.
        missing_queues: Queues that were looked up in vain.
        malformed: HTTP status when the question itself could not be understood, else 0.
        status: Code of the answer: 200 when the object is admitted, else why it is not.
    """

    body: bytes
    outcome: Outcome
    operation: str = ""
    uid: str = ""
    codes: tuple[str, ...] = ()
    missing_queues: tuple[str, ...] = ()
    malformed: int = 0
    status: int = 200


def responded(kind: Kind, name: str, case: Case) -> Response:
    """The answer to a case that has been judged."""
    warnings = _texts(case.warnings) if case.warnings else ()
    if case.errors:
        return reviews.denied(case.errors, warnings, name=name, kind=kind.kind, group=kind.group)
    if case.patch.operations:
        return reviews.patched(case.patch.operations, warnings)
    return reviews.allowed(warnings)


def answered(question: Question[Any], response: Response, case: Case) -> Answer:
    """Encode a response and add what its server wants to know."""
    codes: tuple[str, ...] = ()
    outcome: Outcome
    if response.allowed:
        outcome = "allowed" if response.patch is None else "patched"
    elif case.errors:
        outcome = "denied"
        codes = tuple(dict.fromkeys(error.code for error in case.errors))
    else:
        outcome = "errored"
    return Answer(
        reviews.encode(question.uid, response),
        outcome,
        question.operation,
        question.uid,
        codes,
        tuple(case.missing_queues),
        status=response.status.code if response.status is not None else 200,
    )


def malformed(uid: str, status: int, problem: str, reason: str = "BadRequest") -> Answer:
    """The answer to what is no question."""
    response = reviews.errored(status, problem, reason=reason)
    return Answer(
        reviews.encode(uid, response), "errored", uid=uid, malformed=status, status=status
    )


def _texts(warnings: list[FieldError]) -> list[str]:
    return list(dict.fromkeys(str(warning) for warning in warnings))
