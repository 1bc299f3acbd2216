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
from pumice.api.reviews import Request, Response, Review
from pumice.plugins import PluginSettings, Registry
from pumice.plugins.native import NativeWirings
from pumice.plugins.settings import DEFAULT
from pumice.webhook.answers import Answer, answered, malformed, responded, unreadable
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
from pumice.webhook.rules.case import Case, EnoughError
from pumice.webhook.rules.jobs.plugins import annotating
from pumice.webhook.rules.known_templates import KnownTemplates
from pumice.webhook.rules.resource_groups import NO_GROUPS, ResourceGroups
from pumice.webhook.rules.terms import Terms
from pumice.webhook.type_problems import brought_type_problems, trusted, without
from pumice.webhook.view import AdmissionView

__all__ = ["Admission", "RuleFailure"]


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """A rule that raised.

    Attributes:
        path: Endpoint.
        uid: Uid of the first review for which it raised.
        code: Code of the rule, or of the endpoint if no rule raised.
        error: The exception.
    """

    path: str
    uid: str
    code: str
    error: Exception


class Admission:
    """Answers reviews by the rules.

    It may be shared: its only state is the set of reported crashes, and the pod templates without problems.
    """

    def __init__(
        self,
        settings: Terms,
        view: AdmissionView,
        plugins: Registry,
        *,
        groups: ResourceGroups = NO_GROUPS,
        plugin_settings: PluginSettings = DEFAULT,
        on_crash: Callable[[RuleFailure], None] | None = None,
    ) -> None:
        """Create admission from settings, job plugins and a view of the cluster.

        `groups` may be replaced between two reviews. `on_crash` is called once for each place where a rule raises.
        """
        self.settings = settings
        self.view = view
        self.plugins = plugins
        self.groups = groups
        self._annotating = annotating(plugins)
        self._wirings = NativeWirings(plugins, plugin_settings, max_pods=settings.max_pods_per_job)
        self._on_crash = on_crash
        self._told: set[tuple[str, str, int]] = set()
        self._known = KnownTemplates()

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
        review: Envelope[Any] | Review
        try:
            review = endpoint.reviews.decode(body)
        except UNREADABLE:
            try:
                review = msgspec.json.decode(body, type=Review)
            except UNREADABLE as error:
                return unreadable(uid_of(body), f"this is no AdmissionReview: {error}")
        asked, problem = review.request, review_problem(review)
        if asked is None or problem:
            return malformed(asked.uid if asked else uid_of(body), 400, problem or "")
        if isinstance(asked, Request):
            question = bare(asked)
            case = self.case(question, view, reviews.MOST_CAUSES)
            return answered(question, self._admit(endpoint, asked, case), case)
        case = self.case(asked, view, reviews.MOST_CAUSES)
        response = (
            _refusal(endpoint, asked)
            or _absence(asked, asked.object, asked.old_object)
            or self._respond(endpoint, asked, body, case)
        )
        return answered(asked, response, case)

    def judge(self, path: str, request: Request) -> Case:
        """Check a request, and return the case: problems, warnings and changes.

        Raises:
            KeyError: There is no such endpoint.
        """
        case = self.case(bare(request))
        self._admit(ENDPOINTS[path], request, case)
        return case

    def case(
        self, question: Question[Any], view: AdmissionView | None = None, most: int | None = None
    ) -> Case:
        """Create the case for the object of a review, with a maximum number of errors."""
        return Case(
            self.settings,
            view or self.view,
            self.plugins,
            annotating=self._annotating,
            wirings=self._wirings,
            groups=self.groups,
            known=self._known,
            creating=question.operation == "CREATE",
            uid=question.uid,
            namespace=question.namespace,
            most=most,
        )

    def _admit(self, endpoint: Endpoint, request: Request, case: Case) -> Response:
        question = bare(request)
        new_one, old_one = (_given(each) for each in (request.object, request.old_object))
        if refusal := _refusal(endpoint, question) or _absence(question, new_one, old_one):
            return refusal
        wanted: Any = endpoint.type | None
        try:
            new = read(request.object, wanted)
        except UNREADABLE as error:
            self._judge_rest(endpoint, request, case, error)
            self._tell(endpoint, case)
            return responded(endpoint.registration.kind, request.name, case)
        try:
            old = read(request.old_object, wanted)
        except UNREADABLE:
            if _is_going(new):
                return responded(endpoint.registration.kind, request.name, case)
            old = None  # the stored object cannot be read, so the object is checked as a new one
        question = msgspec.structs.replace(question, object=new, old_object=old)
        return self._respond(endpoint, question, request, case)

    def _judge_rest(
        self, endpoint: Endpoint, request: Request, case: Case, error: Exception
    ) -> None:
        """Report all unreadable fields, and for a new object the problems of the other fields."""
        kind = endpoint.registration.kind
        problems = brought_type_problems(kind, request, error)
        case.errors.extend(problems)
        if not problems or not case.creating or endpoint.registration.mutating:
            return
        if case.most is not None and len(problems) >= case.most:
            return
        dropped = [problem.path for problem in problems]
        judged = case.sibling()
        try:
            rest = without(without_nulls(msgspec.json.decode(request.object)), dropped)
            question = msgspec.structs.replace(
                bare(request), object=msgspec.convert(rest, endpoint.type)
            )
            endpoint.judge(judged, question, request)
        except UNREADABLE:
            return  # a path could not be followed, so the field is still there
        except Exception as crash:
            case.crashed(endpoint.code, crash)
            return
        case.errors.extend(trusted(judged.errors, dropped))
        case.warnings.extend(trusted(judged.warnings, dropped))
        case.missing_queues.extend(judged.missing_queues)
        case.crashes.extend(judged.crashes)

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
        if case.crashes:
            self._tell(endpoint, case)
        return responded(endpoint.registration.kind, question.name, case)

    def _tell(self, endpoint: Endpoint, case: Case) -> None:
        for code, error in case.crashes:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = code, type(error).__name__, trace.tb_lineno if trace is not None else 0
            if self._on_crash is not None and place not in self._told:
                self._told.add(place)
                self._on_crash(RuleFailure(endpoint.registration.path, case.uid, code, error))


def _refusal(endpoint: Endpoint, question: Question[Any]) -> Response | None:
    """The answer to a review for another endpoint."""
    registration = endpoint.registration
    kind = registration.kind
    if not question.is_about(kind):
        found = question.resource
        return reviews.errored(
            400,
            f'expected resource "{kind.plural}" of "{kind.api_version}", found "{found.resource}" of '
            f'"{found.group}/{found.version}"',
        )
    if question.operation not in registration.operations and not registration.lenient:
        known = ", ".join(registration.operations)
        message = f'operation "{question.operation}" is not one of those judged here: {known}'
        return reviews.errored(400, message)
    return None


def _absence(question: Question[Any], new: object, old: object) -> Response | None:
    """The answer to a review that lacks the objects of its operation."""
    operation = question.operation
    if new is None and operation in ("CREATE", "UPDATE"):
        missing = "object"
    elif old is None and (operation == "UPDATE" or (operation == "DELETE" and not question.name)):
        missing = "oldObject"
    else:
        return None
    return reviews.errored(
        400, f"a review of operation {operation} must have an {missing}, found none"
    )


def _is_going(found: Any) -> bool:
    """True if an object exists and is being deleted."""
    return bool(getattr(getattr(found, "metadata", None), "deletion_timestamp", None))


def _given(raw: msgspec.Raw) -> msgspec.Raw | None:
    return None if bytes(raw) == b"null" else raw
