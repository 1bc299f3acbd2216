"""A review over HTTP: read it, have it judged, look up what is missing, count it, log it."""

import asyncio
import logging
import re
import time

import structlog
from aiohttp import StreamReader, web

from pumice.webhook.admission import Admission, Crash
from pumice.webhook.answers import Answer
from pumice.webhook.server.lookup import QueueLookup
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.replies import JSON, status
from pumice.webhook.server.settings import ServerSettings
from pumice.webhook.view import Overlay

__all__ = ["Reviews", "log_crash"]

_NAME = "pumice.webhook"
log = structlog.stdlib.get_logger(_NAME)

_TYPE = "application/json"
_TIMEOUT = re.compile(
    r"(?:(?P<minutes>\d{1,4})m)?(?:(?P<seconds>\d{1,9}(?:\.\d*)?)s)?(?:(?P<milli>\d{1,9})ms)?",
    re.ASCII,
)
_MARGIN_SECONDS = 0.5
"""Kept back of the API server's timeout for the way home."""

_CLOSING = {**JSON, "Connection": "close"}


class Reviews:
    """Answers POSTs of reviews.

    Attributes:
        closing: Asks the other side to open no further review on its connection.
        running: How many reviews have begun to arrive and are not answered yet.
    """

    def __init__(
        self,
        admission: Admission,
        metrics: ServerMetrics,
        settings: ServerSettings,
        lookup: QueueLookup | None = None,
    ) -> None:
        """Answer by admission's rules.

        Args:
            admission: Judges.
            metrics: Counts.
            settings: Limits.
            lookup: Asked for queues that are missing, before they count as missing.
        """
        self.closing = False
        self.running = 0
        self._admission = admission
        self._metrics = metrics
        self._settings = settings
        self._lookup = lookup

    async def post(self, request: web.Request) -> web.Response:
        """Answer a review. Every body gets an answer."""
        self.running += 1
        try:
            return await self._post(request)
        finally:
            self.running -= 1

    async def _post(self, request: web.Request) -> web.Response:
        started = time.perf_counter()
        path = _endpoint(request.path)
        if refusal := _refusal(request, self._settings.body_limit):
            self._metrics.turned_away(path, refusal.status)
            return refusal
        body = await self._read(request)
        if isinstance(body, web.Response):
            self._metrics.turned_away(path, body.status)
            return body
        answer = self._admission.answer(path, body)
        if answer.missing_queues and self._lookup is not None and _doubted(answer):
            answer = await self._again(request, path, self._lookup, body, answer)
        seconds = time.perf_counter() - started
        self._metrics.answered(path, answer, seconds)
        if answer.outcome == "denied" or answer.outcome == "errored" or answer.tolerated:
            _log(path, answer, seconds)
        elif logging.getLogger(_NAME).isEnabledFor(logging.DEBUG):
            log.debug("reviewed", path=path, uid=answer.uid, outcome=answer.outcome)
        return web.Response(
            body=answer.body,
            status=answer.malformed or 200,
            headers=_CLOSING if self.closing else JSON,
        )

    async def _read(self, request: web.Request) -> bytes | web.Response:
        """The body, or the answer where it is too long, too slow or garbled on its way."""
        content = request.content
        try:
            if content.is_eof():
                return await self._whole(content)
            async with asyncio.timeout(self._settings.read_seconds):
                return await self._whole(content)
        except TimeoutError:
            seconds = self._settings.read_seconds
            return _last(408, f"the review had not arrived whole after {seconds:g} s")
        except web.RequestPayloadError as error:
            content.feed_eof()  # or the server reads on after the answer, into the same error
            return _last(400, f"the body cannot be read: {' '.join(str(error).split())}")

    async def _whole(self, content: StreamReader) -> bytes | web.Response:
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
        return b"".join(parts)

    async def _again(
        self, request: web.Request, path: str, lookup: QueueLookup, body: bytes, answer: Answer
    ) -> Answer:
        """Judge anew with the queues that exist by now; each step up a tree may need another look."""
        deadline = time.monotonic() + min(self._settings.lookup_seconds, _timeout(request))
        view = self._admission.view
        asked: set[str] = set()
        while _doubted(answer):
            missing = tuple(name for name in answer.missing_queues if name not in asked)
            left = deadline - time.monotonic()
            if not missing or left <= 0:
                break
            asked.update(missing)
            found = await lookup.find(missing, left)
            if not found:
                break
            view = Overlay(view, found)
            answer = self._admission.answer(path, body, view)
        return answer


def _endpoint(path: str) -> str:
    """The endpoint of a path: its first two words; what follows is advice for the eye."""
    return "/".join(path.split("/", 3)[:3])


def _refusal(request: web.Request, limit: int) -> web.Response | None:
    """The answer to a request that is not even read."""
    found = request.headers.get("Content-Type", "")
    if found != _TYPE and found.partition(";")[0].strip().lower() != _TYPE:
        message = f'expected Content-Type "{_TYPE}", found "{found}"'
        return status(415, message, {"Accept": _TYPE})
    length = request.content_length
    if length is not None and length > limit:
        return _too_large(limit)
    return None


def _doubted(answer: Answer) -> bool:
    """Whether a missing queue may be what the answer finds wrong."""
    return answer.outcome == "denied" or bool(answer.warned)


def _too_large(limit: int) -> web.Response:
    return _last(413, f"a review may have {limit} bytes at most")


def _last(code: int, message: str) -> web.Response:
    # What is left of the body would be taken for the next request, so the connection ends.
    response = status(code, message)
    response.force_close()
    return response


def _timeout(request: web.Request) -> float:
    """Seconds that the API server still waits, by its `?timeout=`."""
    match = _TIMEOUT.fullmatch(request.query.get("timeout", ""))
    if match is None or not match[0]:
        return float("inf")
    seconds = 60 * int(match["minutes"] or 0) + float(match["seconds"] or 0)
    seconds += int(match["milli"] or 0) / 1000
    return max(seconds - _MARGIN_SECONDS, 0.0)


def _log(path: str, answer: Answer, seconds: float) -> None:
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
