"""The core of admission: a review in, a response out, for any input.

A review is decoded once, its objects straight into the structs that the rules read. Objects that cannot be decoded are
checked field by field, to report all problems. Nothing raises: a review that cannot be decided gets an answer with the
reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api import reviews
from pumice.api.reviews import Response
from pumice.plugins import PluginSettings, Registry
from pumice.plugins.other_owners import OwnerWirings
from pumice.plugins.settings import DEFAULT
from pumice.webhook.answers import Answer, answered, malformed, responded
from pumice.webhook.endpoints import ENDPOINTS, Endpoint
from pumice.webhook.questions import (
    UNREADABLE,
    Envelope,
    Question,
    Source,
    UnreadableError,
    bare,
    read,
    review_problem,
    uid_of,
    without_nulls,
)
from pumice.webhook.rules.case import Case, EnoughError, check_rest
from pumice.webhook.rules.paths import without
from pumice.webhook.rules.resource_groups import NO_GROUPS, ResourceGroups
from pumice.webhook.rules.rule import RuleSettings
from pumice.webhook.schema_problems import COMPARING, brought_type_problems
from pumice.webhook.view import AdmissionView


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """A rule that raised.

    Attributes:
        path: Endpoint.
        uid: Uid of the review.
        code: Code of the rule, or of the endpoint if no rule raised.
        error: The exception.
    """

    path: str
    uid: str
    code: str
    error: Exception


class Admission:
    """Answers reviews by the rules, and keeps nothing of one for the next.

    Attributes:
        groups: Resource groups; they may be replaced between two reviews.
        on_crash: Called for each rule that raises; a server that answers with it counts them.
    """

    def __init__(
        self,
        settings: RuleSettings,
        view: AdmissionView,
        plugins: Registry,
        *,
        groups: ResourceGroups = NO_GROUPS,
        plugin_settings: PluginSettings = DEFAULT,
        on_crash: Callable[[RuleFailure], None] | None = None,
    ) -> None:
        """Create admission from settings, job plugins and a view of the cluster."""
        self.settings = settings
        self.view = view
        self.plugins = plugins
        self.groups = groups
        self.on_crash = on_crash
        self._wirings = OwnerWirings(plugins, plugin_settings, max_pods=settings.max_pods_per_job)

    def review(self, path: str, body: bytes) -> bytes:
        """Answer a review: an AdmissionReview as JSON in, one out. Never raises."""
        return self.answer(path, body).body

    def answer(self, path: str, body: bytes, view: AdmissionView | None = None) -> Answer:
        """Answer a review, optionally with another view. Never raises."""
        endpoint = ENDPOINTS.get(path)
        if endpoint is None:
            known = ", ".join(ENDPOINTS)
            message = f"there is no endpoint {path}, only {known}"
            return malformed(uid_of(body), 404, message, "NotFound")
        review: Envelope[Any]
        try:
            review, readable = endpoint.reviews.decode(body), True
        except UNREADABLE:
            try:
                review, readable = msgspec.json.decode(body, type=Envelope[msgspec.Raw]), False
            except UNREADABLE as error:
                uid, message = uid_of(body), f"this is no AdmissionReview: {error}"
                return malformed(uid, 400, message, shown=bool(uid))
        request, problem = review.request, review_problem(review)
        if request is None or problem:
            return malformed(request.uid if request else uid_of(body), 400, problem or "")
        question = request if readable else bare(request)
        case = self.case(question, view, reviews.MOST_CAUSES, len(body))
        if problem := _unfit(endpoint, question):
            response = reviews.errored(400, problem)
        elif readable:
            response = self._respond(endpoint, question, body, case)
        else:
            response = self._admit(endpoint, question, case)
        return answered(question, response, case)

    def judge(self, path: str, question: Question[msgspec.Raw | None]) -> Case:
        """Check the object of a question, and return the case: problems, warnings and changes.

        Raises:
            KeyError: There is no such endpoint.
        """
        endpoint = ENDPOINTS[path]
        case = self.case(question)
        if not _unfit(endpoint, question):
            self._admit(endpoint, question, case)
        return case

    def case(
        self,
        question: Question[Any],
        view: AdmissionView | None = None,
        most: int | None = None,
        review_bytes: int = 0,
    ) -> Case:
        """Create the case for the object of a review, with a maximum number of errors, and the size of the review."""
        return Case(
            self.settings,
            view or self.view,
            self.plugins,
            wirings=self._wirings,
            groups=self.groups,
            creating=question.operation == "CREATE",
            uid=question.uid,
            namespace=question.namespace,
            review_bytes=review_bytes,
            most=most,
        )

    def _admit(
        self, endpoint: Endpoint, request: Question[msgspec.Raw | None], case: Case
    ) -> Response:
        wanted: Any = endpoint.type | None
        raw, raw_old = request.object, request.old_object
        try:
            new = raw and read(raw, wanted)
        except UNREADABLE as error:
            self._judge_rest(endpoint, request, case, error)
            return self._finish(endpoint, request.name, case)
        try:
            old = raw_old and read(raw_old, wanted)
        except UNREADABLE:
            if getattr(getattr(new, "metadata", None), "deletion_timestamp", None):
                return self._finish(endpoint, request.name, case)
            old = None  # the stored object cannot be read, so the object is checked as a new one
        question: Question[Any] = msgspec.structs.replace(request, object=new, old_object=old)
        return self._respond(endpoint, question, raw or b"", case)

    def _judge_rest(
        self,
        endpoint: Endpoint,
        request: Question[msgspec.Raw | None],
        case: Case,
        error: Exception,
    ) -> None:
        """Report all unreadable fields, and for a new object the problems of the other fields."""
        problems = brought_type_problems(endpoint.registration.kind, request, error)
        case.errors.extend(problems)
        enough = case.most is not None and len(problems) >= case.most
        if enough or not problems or not case.creating or endpoint.registration.mutating:
            return
        dropped, raw = [problem.path for problem in problems], request.object or b"null"
        try:
            rest = without(without_nulls(msgspec.json.decode(raw)), dropped)
            question = msgspec.structs.replace(request, object=msgspec.convert(rest, endpoint.type))
            check_rest(case, dropped, COMPARING, lambda own: endpoint.judge(own, question, raw))
        except UNREADABLE:
            pass  # a path could not be followed, so the field is still there
        except Exception as crash:
            case.crashed(endpoint.code, crash)

    def _respond(
        self, endpoint: Endpoint, question: Question[Any], source: Source, case: Case
    ) -> Response:
        if not question.sub_resource:
            try:
                endpoint.judge(case, question, source)
            except EnoughError:
                pass  # the problems found so far are reported
            except UnreadableError as error:
                return reviews.errored(400, f"the object cannot be read: {error}")
            except Exception as error:
                case.crashed(endpoint.code, error)
        return self._finish(endpoint, question.name, case)

    def _finish(self, endpoint: Endpoint, name: str, case: Case) -> Response:
        """The response for a checked case; rules that raised are reported."""
        if self.on_crash is not None:
            for code, error in case.crashes:
                self.on_crash(RuleFailure(endpoint.registration.path, case.uid, code, error))
        return responded(endpoint.registration.kind, name, case)


def _unfit(endpoint: Endpoint, question: Question[Any]) -> str:
    """Why an endpoint cannot decide a review: it is for another one, or lacks objects; empty if it can."""
    registration, operation, found = endpoint.registration, question.operation, question.resource
    kind = registration.kind
    if found.resource != kind.plural or found.group != kind.group or found.version != kind.version:
        expected = f'expected resource "{kind.plural}" of "{kind.api_version}"'
        return f'{expected}, found "{found.resource}" of "{found.group}/{found.version}"'
    if operation not in registration.operations and not registration.lenient:
        known = ", ".join(registration.operations)
        return f'operation "{operation}" is not one of those judged here: {known}'
    if question.object is None and operation in ("CREATE", "UPDATE"):
        missing = "object"
    elif question.old_object is None and (
        operation == "UPDATE" or (operation == "DELETE" and not question.name)
    ):
        missing = "oldObject"
    else:
        return ""
    return f"a review of operation {operation} must have an {missing}, found none"
