"""A review over HTTP: read it, check it, look up missing objects, count it, log it.

A body stays in memory until its review is answered. Senders are not authenticated before their body is read, so the
number of bytes is limited. A large body takes its announced length from the budget, and waits if the budget is used up:
the API server then waits, up to its own deadline. Small bodies, which nearly all reviews have, take nothing; the limit
of connections bounds their number.

"""

import asyncio
import logging
import time
from contextlib import suppress
from typing import cast

import structlog
from aiohttp import web
from multidict import CIMultiDict

from pumice.api.durations import parse_nanoseconds
from pumice.api.kinds import QUEUE
from pumice.serving.http_server import JSON, HttpError
from pumice.webhook.admission import Admission, RuleFailure
from pumice.webhook.answers import Answer, malformed
from pumice.webhook.endpoints import ENDPOINTS
from pumice.webhook.questions import uid_of
from pumice.webhook.server.lookup import LiveLookup, late, needs_owners, needs_queues, needs_tree
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.settings import ServerSettings
from pumice.webhook.view import Overlay

SMALL = 64 * 1024
"""Bytes of a body that takes nothing from the budget."""

_MAX_WAITING = 64
"""Maximum number of waiting bodies; some hundred KiB of each may already be in memory."""


class BudgetExceededError(Exception):
    """No bytes are left, and too many bodies wait for them already."""


class BodyBudget:
    """A number of bytes that large bodies share, first come, first served.

    Attributes:
        size: Bytes of the budget.
        taken: Bytes that are in use.
        waiting: Bodies that wait for bytes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self.waiting = 0
        self._turn = asyncio.Lock()  # the first body in the queue; locks are fair
        self._released = asyncio.Event()

    async def acquire(self, announced: int) -> int:
        """Take bytes for a body of the announced length, and wait for them if necessary; returns what to `release`.

        A body larger than the budget takes all of it.

        Raises:
            BudgetExceededError: Too many bodies wait already.
        """
        if announced <= SMALL:
            return 0
        if self.waiting >= _MAX_WAITING:
            raise BudgetExceededError
        wanted = min(announced, self.size)
        self.waiting += 1
        try:
            async with self._turn:
                while self.taken + wanted > self.size:
                    self._released.clear()
                    await self._released.wait()
                self.taken += wanted
        finally:
            self.waiting -= 1
        return wanted

    def release(self, taken: int) -> None:
        """Return bytes to the budget."""
        self.taken -= taken
        self._released.set()


_NAME = "pumice.webhook"
_ADVICE = "/if-this-fails"
log = structlog.stdlib.get_logger(_NAME)
logger = logging.getLogger(_NAME)  # asking the logger for its level costs less

_TYPE = "application/json"
_HEADERS = CIMultiDict(JSON)  # aiohttp copies it at once, and a dict key by key
_CONTINUE = "100-continue"

_MARGIN_SECONDS = 0.5
"""Maximum part of the API server's timeout that is reserved for sending the answer."""

_MARGIN_SHARE = 0.25
"""Share of a short timeout that is reserved; the shortest timeout of a webhook is one second."""


class Reviews:
    """Answers POSTs of reviews."""

    def __init__(
        self,
        admission: Admission,
        metrics: ServerMetrics,
        settings: ServerSettings,
        lookup: LiveLookup | None = None,
    ) -> None:
        """Answer with the rules of admission; `lookup` reads objects that the caches may lack."""
        self._admission = admission
        admission.on_crash = self._crashed
        self._metrics = metrics
        self._settings = settings
        self._lookup = lookup
        self._logged: set[tuple[str, str, type[Exception]]] = set()
        # Only for its answer to `Expect: 100-continue`.
        self._route = web.UrlDispatcher().add_post("/", self.post)
        self._budget = BodyBudget(settings.body_budget)
        metrics.body_bytes.set_function(lambda: self._budget.taken)
        metrics.bodies_waiting.set_function(lambda: self._budget.waiting)

    async def post(self, request: web.BaseRequest) -> web.Response:
        """Answer a review.

        Raises:
            HttpError: The request could not be read.
        """
        started = time.perf_counter()
        path = endpoint_of(request)
        content, limit = request.content, self._settings.body_limit
        _check_head(request, limit)
        if content.is_eof() and content.exception() is None:  # most bodies arrive with their head
            if len(body := content.read_nowait()) > limit:
                raise _too_large(limit)
            return await self._answer(request, path, body, started)
        seconds = min(self._settings.read_seconds, _allowed_seconds(request))
        deadline = asyncio.get_running_loop().time() + seconds
        length = request.content_length
        announced = limit if length is None else length
        taken = await self._reserve(announced, deadline) if announced > SMALL else 0
        try:
            body = await self._read(request, seconds, deadline)
            return await self._answer(request, path, body, started)
        finally:
            self._budget.release(taken)

    async def _answer(
        self, request: web.BaseRequest, path: str, body: bytes, started: float
    ) -> web.Response:
        try:
            answer = await self._judge(request, path, body, started)
        except Exception as error:
            answer = self._failed(path, body, error)
        try:
            self._note(path, answer, time.perf_counter() - started)
        except Exception as error:  # the answer holds all the same
            self._crashed(RuleFailure(path, answer.question.uid, ENDPOINTS[path].code, error))
        return web.Response(body=answer.body, status=answer.malformed or 200, headers=_HEADERS)

    def _note(self, path: str, answer: Answer, seconds: float) -> None:
        """Count and log an answer."""
        self._metrics.answered(path, answer, seconds)
        if answer.outcome == "denied" or answer.outcome == "errored" or answer.tolerated:
            _log(path, answer, seconds)
        elif logger.isEnabledFor(logging.DEBUG):
            log.debug("reviewed", path=path, uid=answer.question.uid, outcome=answer.outcome)

    async def _judge(
        self, request: web.BaseRequest, path: str, body: bytes, started: float
    ) -> Answer:
        """Answer from the caches; if objects are missing, read them from the API server and answer again."""
        answer = self._admission.answer(path, body)
        if self._lookup is None:
            return answer
        if needs_queues(answer):
            names = tuple(dict.fromkeys(answer.missing_queues))
            keys = [(QUEUE, "", name) for name in names]
            left, tree = self._seconds_left(request, started), needs_tree(answer)
            try:
                queues = await self._lookup.find(keys, left, tree=tree)
            except TimeoutError:
                return late(answer, names)
            if queues:
                answer = self._admission.answer(path, body, Overlay(self._admission.view, queues))
        if needs_owners(answer):
            left = self._seconds_left(request, started)
            with suppress(TimeoutError):  # the controller of the pod tries again
                if owners := await self._lookup.find(answer.missing_owners, left):
                    view = Overlay(self._admission.view, owners)
                    answer = self._admission.answer(path, body, view)
        return answer

    async def _reserve(self, announced: int, deadline: float) -> int:
        """Take bytes of the budget for a large body; returns what to release."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._budget.acquire(announced)
        except (TimeoutError, BudgetExceededError):
            message = "too many long reviews arrive at once, and there was no room for this one"
            raise HttpError(503, message, {"Retry-After": "1"}) from None

    async def _read(self, request: web.BaseRequest, seconds: float, deadline: float) -> bytes:
        """The body; reading stops if no more of it arrives."""
        content, limit = request.content, self._settings.body_limit
        now, quiet = asyncio.get_running_loop().time, self._settings.quiet_seconds
        parts, size = [], 0
        try:
            async with asyncio.timeout_at(min(deadline, now() + quiet)) as patience:
                if request.headers.get("Expect", "").lower() == _CONTINUE:
                    await self._route.handle_expect_header(cast("web.Request", request))
                while part := await content.readany():
                    parts.append(part)
                    size += len(part)
                    if size > limit:
                        raise _too_large(limit)
                    patience.reschedule(min(deadline, now() + quiet))
        except TimeoutError:
            if now() < deadline:
                problem = f"nothing more of the review arrived for {quiet:g} s"
            else:
                problem = f"the review had not arrived whole after {seconds:g} s"
            raise HttpError(408, problem) from None
        except (web.RequestPayloadError, ConnectionError) as error:
            # The stream keeps the error, and the traceback would keep these frames and the body.
            error.with_traceback(None)
            if isinstance(error, ConnectionError):
                problem = f"the connection was lost after {content.total_bytes} bytes of the body"
            else:
                problem = f"the body cannot be read: {error}"
            raise HttpError(400, problem) from None
        return b"".join(parts)

    def _seconds_left(self, request: web.BaseRequest, started: float) -> float:
        """Maximum duration of a lookup."""
        gone = time.perf_counter() - started
        return min(self._settings.lookup_seconds, _allowed_seconds(request) - gone)

    def _failed(self, path: str, body: bytes, error: Exception) -> Answer:
        """The answer to an exception outside of rules."""
        uid, code = uid_of(body), ENDPOINTS[path].code
        self._crashed(RuleFailure(path, uid, code, error))
        problem = f"judging review {uid} failed: {type(error).__name__}: {error} [{code}]"
        # An exception may say anything.
        problem = problem.encode(errors="backslashreplace").decode()
        return malformed(uid, 500, problem, "InternalError", shown=True)

    def _crashed(self, crash: RuleFailure) -> None:
        """Count an exception, and log the first one of its kind at its place."""
        self._metrics.crashes.labels(crash.code).inc()
        place = crash.path, crash.code, type(crash.error)
        if place not in self._logged:
            self._logged.add(place)
            log.error(
                "a rule raised; reviews that meet it are refused",
                path=crash.path,
                uid=crash.uid,
                rule=crash.code,
                exc_info=crash.error,
            )


def _allowed_seconds(request: web.BaseRequest) -> float:
    """Seconds in which to answer by `?timeout=`; infinity if there is none or it is invalid."""
    nanoseconds = parse_nanoseconds(request.query.get("timeout", ""))
    if nanoseconds is None or nanoseconds <= 0:
        return float("inf")
    seconds = nanoseconds / 1e9
    return seconds - min(_MARGIN_SECONDS, seconds * _MARGIN_SHARE)


def endpoint_of(request: web.BaseRequest) -> str:
    """The path without the hint that the chart appends.

    If a webhook does not answer, the API server shows only its URL to the user, so the chart puts a hint into the path.
    """
    return request.path.partition(_ADVICE)[0]


def _check_head(request: web.BaseRequest, limit: int) -> None:
    found = request.headers.get("Content-Type", "")
    if found != _TYPE and found.partition(";")[0].strip().lower() != _TYPE:
        message = f'expected Content-Type "{_TYPE}", found "{found}"'
        raise HttpError(415, message, {"Accept": _TYPE})
    if encoding := request.headers.get("Content-Encoding"):
        message = f'expected no Content-Encoding, found "{encoding}"'
        raise HttpError(415, message, {"Accept-Encoding": "identity"})
    length = request.content_length
    if length is not None and length > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> HttpError:
    return HttpError(413, f"a review may have {limit} bytes at most")


def _log(path: str, answer: Answer, seconds: float) -> None:
    question = answer.question
    why = {"status": answer.status, "message": answer.problem} if answer.problem else {}
    log.info(
        answer.outcome,
        path=path,
        uid=question.uid,
        operation=question.operation,
        namespace=question.namespace,
        name=question.name,
        rules=list(answer.codes),
        tolerated=list(answer.tolerated),
        milliseconds=round(seconds * 1000, 3),
        **why,
    )
