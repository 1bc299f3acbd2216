"""A review over HTTP: read it, have it judged, look up what is missing, count it, log it."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import structlog
from aiohttp import StreamReader, web

from pumice.webhook.admission import Admission, Crash
from pumice.webhook.answers import Answer, malformed
from pumice.webhook.endpoints import ENDPOINTS
from pumice.webhook.questions import uid_of
from pumice.webhook.server.deadline import allowed_seconds, late
from pumice.webhook.server.lookup import (
    OwnerLookup,
    QueueLookup,
    needs_above,
    needs_owners,
    needs_queues,
)
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.refusing import turned_away
from pumice.webhook.server.replies import JSON, status
from pumice.webhook.server.room import NoRoomError, Room
from pumice.webhook.server.settings import ServerSettings
from pumice.webhook.view import Overlay

__all__ = ["Reviews", "endpoint_of", "log_crash"]

_NAME = "pumice.webhook"
_ADVICE = "/if-this-fails"
log = structlog.stdlib.get_logger(_NAME)

_TYPE = "application/json"
_CONTINUE = "100-continue"


class Reviews:
    """Answers POSTs of reviews."""

    def __init__(
        self,
        admission: Admission,
        metrics: ServerMetrics,
        settings: ServerSettings,
        lookup: QueueLookup | None = None,
        owners: OwnerLookup | None = None,
    ) -> None:
        """Answer by admission's rules.

        Args:
            admission: Judges.
            metrics: Counts.
            settings: Limits.
            lookup: Asked for queues for want of which alone a review would be denied.
            owners: Asked for owners for want of which a pod could not be wired.
        """
        self._admission = admission
        self._metrics = metrics
        self._settings = settings
        self._lookup = lookup
        self._owners = owners
        self._told: set[str] = set()
        self._room = Room(settings.room)
        metrics.body_bytes.set_function(lambda: self._room.taken)
        metrics.bodies_waiting.set_function(lambda: self._room.waiting)

    async def post(self, request: web.BaseRequest) -> web.Response:
        """Answer a review. Every body gets an answer."""
        started = time.perf_counter()
        path = endpoint_of(request)
        if refusal := _refusal(request, self._settings.body_limit):
            return turned_away(self._metrics, path, refusal)
        if request.content.is_eof():
            return await self._answer(request, path, await self._read(request), started)
        seconds = min(self._settings.read_seconds, allowed_seconds(request))
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                taken = await self._room.enter(self._announced(request))
        except (TimeoutError, NoRoomError):
            message = "too many long reviews arrive at once, and there was no room for this one"
            return turned_away(self._metrics, path, _last(503, message, {"Retry-After": "1"}))
        try:
            body = await self._read(request, seconds, deadline)
            return await self._answer(request, path, body, started)
        finally:
            self._room.leave(taken)

    async def _answer(
        self, request: web.BaseRequest, path: str, body: bytes | web.Response, started: float
    ) -> web.Response:
        if isinstance(body, web.Response):
            return turned_away(self._metrics, path, body)
        try:
            answer = self._admission.answer(path, body)
            if self._lookup is not None and needs_queues(answer):
                answer = await self._with_queues(request, self._lookup, body, answer, started)
            if self._owners is not None and needs_owners(answer):
                answer = await self._with_owners(request, self._owners, body, answer, started)
        except Exception as error:
            answer = self._crashed(path, body, error)
        seconds = time.perf_counter() - started
        self._metrics.answered(path, answer, seconds)
        if answer.outcome == "denied" or answer.outcome == "errored" or answer.tolerated:
            _log(path, answer, seconds)
        elif logging.getLogger(_NAME).isEnabledFor(logging.DEBUG):
            log.debug("reviewed", path=path, uid=answer.uid, outcome=answer.outcome)
        return web.Response(body=answer.body, status=answer.malformed or 200, headers=JSON)

    def _announced(self, request: web.BaseRequest) -> int:
        """Bytes that a body will have at most."""
        length = request.content_length
        return self._settings.body_limit if length is None else length

    async def _read(
        self, request: web.BaseRequest, seconds: float = 0.0, deadline: float = 0.0
    ) -> bytes | web.Response:
        """The body, or the answer where it is too long, too slow or garbled on its way."""
        content = request.content
        time = asyncio.get_running_loop().time
        quiet = self._settings.quiet_seconds
        try:
            if content.is_eof():
                return await self._whole(content)
            async with asyncio.timeout_at(min(deadline, time() + quiet)) as patience:
                await _invite(request)
                return await self._whole(
                    content, lambda: patience.reschedule(min(deadline, time() + quiet))
                )
        except TimeoutError:
            if time() < deadline:
                return _last(408, f"nothing more of the review arrived for {quiet:g} s")
            return _last(408, f"the review had not arrived whole after {seconds:g} s")
        except (web.RequestPayloadError, ConnectionError) as error:
            # The stream keeps what ended it, which would keep these frames and all that they have read.
            error.with_traceback(None)
            if isinstance(error, web.RequestPayloadError):
                return _last(400, f"the body cannot be read: {error}")
            return _last(
                400, f"the connection was lost after {content.total_bytes} bytes of the body"
            )

    async def _whole(
        self, content: StreamReader, more: Callable[[], None] | None = None
    ) -> bytes | web.Response:
        """All of a body; `more` is told of each piece after the first."""
        limit = self._settings.body_limit
        body = await content.readany()
        if content.at_eof():
            return body if len(body) <= limit else _too_large(limit)
        parts, size = [body], len(body)
        while part := await content.readany():
            parts.append(part)
            size += len(part)
            if size > limit:
                return _too_large(limit)
            if more is not None:
                more()
        return b"".join(parts)

    async def _with_queues(
        self,
        request: web.BaseRequest,
        lookup: QueueLookup,
        body: bytes,
        answer: Answer,
        started: float,
    ) -> Answer:
        """Judge anew with the queues that exist by now."""
        names = tuple(dict.fromkeys(answer.missing_queues))
        try:
            found = await lookup.find(
                names, self._seconds_left(request, started), above=needs_above(answer)
            )
        except TimeoutError:
            return late(answer, names)
        if not found:
            return answer
        view = Overlay(self._admission.view, found)
        return self._admission.answer(endpoint_of(request), body, view)

    async def _with_owners(
        self,
        request: web.BaseRequest,
        lookup: OwnerLookup,
        body: bytes,
        answer: Answer,
        started: float,
    ) -> Answer:
        """Judge a pod anew with the owner as it is by now."""
        try:
            found = await lookup.find(answer.missing_owners, self._seconds_left(request, started))
        except TimeoutError:
            return answer  # its controller tries again
        if not found:
            return answer
        view = Overlay(self._admission.view, owners=found)
        return self._admission.answer(endpoint_of(request), body, view)

    def _seconds_left(self, request: web.BaseRequest, started: float) -> float:
        """How long a look may take."""
        gone = time.perf_counter() - started
        return min(self._settings.lookup_seconds, allowed_seconds(request) - gone)

    def _crashed(self, path: str, body: bytes, error: Exception) -> Answer:
        """The answer where something else than a rule raised; it is told once of each kind of error."""
        code, uid = ENDPOINTS[path].code, uid_of(body)
        self._metrics.crashes.labels(code).inc()
        if (place := f"{path} {type(error).__name__}") not in self._told:
            self._told.add(place)
            log_crash(Crash(path, uid, code, error))
        problem = f"judging review {uid} failed: {type(error).__name__}: {error} [{code}]"
        return replace(malformed(uid, 500, problem, "InternalError"), malformed=0)


def endpoint_of(request: web.BaseRequest) -> str:
    """The path without the advice that the chart puts behind it.

    The API server shows the address to whom it could not get an answer for, and nothing else that
    an installation could write.
    """
    return request.path.partition(_ADVICE)[0]


def _refusal(request: web.BaseRequest, limit: int) -> web.Response | None:
    """The answer to a request that is not even read."""
    found = request.headers.get("Content-Type", "")
    if found != _TYPE and found.partition(";")[0].strip().lower() != _TYPE:
        message = f'expected Content-Type "{_TYPE}", found "{found}"'
        return status(415, message, {"Accept": _TYPE})
    if encoding := request.headers.get("Content-Encoding"):
        message = f'expected no Content-Encoding, found "{encoding}"'
        return status(415, message, {"Accept-Encoding": "identity"})
    length = request.content_length
    if length is not None and length > limit:
        return _too_large(limit)
    return None


async def _invite(request: web.BaseRequest) -> None:
    """Ask for a body that is sent on demand only."""
    if request.headers.get("Expect", "").lower() == _CONTINUE:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # or the response would count as begun


def _too_large(limit: int) -> web.Response:
    return _last(413, f"a review may have {limit} bytes at most")


def _last(code: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    # What is left of the body would be taken for the next request, so the connection ends.
    response = status(code, message, headers)
    response.force_close()
    return response


def _log(path: str, answer: Answer, seconds: float) -> None:
    why = {"status": answer.status, "message": answer.problem} if answer.problem else {}
    log.info(
        answer.outcome,
        path=path,
        uid=answer.uid,
        operation=answer.operation,
        namespace=answer.namespace,
        name=answer.name,
        rules=list(answer.codes),
        tolerated=list(answer.tolerated),
        milliseconds=round(seconds * 1000, 3),
        **why,
    )


def log_crash(crash: Crash) -> None:
    """Log a rule that raised; admission tells each place once."""
    log.error(
        "a rule raised; reviews that meet it are refused",
        path=crash.path,
        uid=crash.uid,
        rule=crash.code,
        exc_info=crash.error,
    )
