"""The HTTP server: paths to responses, errors to Statuses, watches to streams; and who may ask.

Loopback keeps other machines out, but neither other users of this one nor the pages of a browser: a page may give its own
host name this machine's address (DNS rebinding) and then ask as if it came from here. Its requests name that
host, and have no token.
"""

import asyncio
import contextlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from aiohttp import http_parser, streams, web
from aiohttp.abc import AbstractStreamWriter

from pumice.embedded import discovery, openapi, statuses
from pumice.embedded.handlers import Handlers
from pumice.embedded.http_messages import HttpRequest, HttpResponse
from pumice.embedded.media import MediaForm, wanted_form
from pumice.embedded.pod_streams import ContainerLogRequest
from pumice.embedded.rendering import Renderer
from pumice.embedded.resources import ResourceRegistry, locate
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Storage, encode
from pumice.embedded.streams import Containers, run_command, stream_log
from pumice.embedded.watching import WatchRequest, watch
from pumice.serving.http_server import other_host

_SCHEME = "bearer "


@dataclass(frozen=True, slots=True)
class Access:
    """The credentials that a request must have.

    Attributes:
        token: The bearer token.
    """

    token: str

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without access.

        Raises:
            ApiStatusError: It names another host (403), or has no token or another one (401).
        """
        if problem := other_host(headers):
            raise ApiStatusError(403, "Forbidden", problem)
        given = headers.get("Authorization", "")
        token = given[len(_SCHEME) :].strip() if given.lower().startswith(_SCHEME) else ""
        if not hmac.compare_digest(token.encode(errors="replace"), self.token.encode()):
            raise ApiStatusError(401, "Unauthorized", "Unauthorized")


MAX_BODY = 3 * 1024 * 1024
"""Bytes that a body may have; as in kube-apiserver."""

_JSON = "application/json"
_HEALTH = {"/healthz", "/readyz", "/livez"}
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Serves the API over HTTP.

    Attributes:
        registry: The resources.
        storage: The objects, for watches.
        handlers: Answers requests for objects.
        renderer: Renders objects in watches.
        bookmark_interval: Seconds between two bookmarks of a watch that asks for them.
        access: Checks the credentials of a request; None to allow all requests.
        containers: The containers of pods; None where there are none.
    """

    registry: ResourceRegistry
    storage: Storage
    handlers: Handlers
    renderer: Renderer
    bookmark_interval: float
    access: Access | None = None
    containers: Containers | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; an exception becomes a response with status 500."""
        try:
            if self.access is not None:
                self.access.check(request.headers)
            return await self._route(request)
        except ApiStatusError as error:
            return _answered(HttpResponse(encode(error.body()), error.code, error.warnings))
        except web.HTTPRequestEntityTooLarge:
            too_large = statuses.body_too_large(MAX_BODY)
            return _json(encode(too_large.body()), too_large.code)
        except ConnectionError:
            raise
        except Exception as error:
            _log.exception("request failed", method=request.method, path=request.path)
            status = statuses.internal(f"{type(error).__name__}: {error}")
            return _json(encode(status.body()), status.code)

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        segments = request.path.strip("/").split("/")
        if segments[0] == "api" and len(segments) > 2:
            pass
        elif segments[0] != "apis" or len(segments) < 4:
            return self._static(request, segments)
        target = locate(self.registry, segments)
        if target is None:
            group, version = ("", segments[1]) if segments[0] == "api" else segments[1:3]
            if version not in self.registry.versions(group):
                return _missing()
            raise statuses.no_such_resource()
        body = await request.read() if request.can_read_body else b""
        answer = self.handlers.answer(
            HttpRequest(request.method, target, request.query, request.headers, body)
        )
        if answer.watch is not None:
            return await self._stream(request, answer.watch)
        if answer.stream is not None and self.containers is not None:
            if isinstance(answer.stream, ContainerLogRequest):
                return await stream_log(request, answer.stream, self.containers)
            return await run_command(request, answer.stream, self.containers)
        return _answered(answer)

    async def _stream(self, request: web.BaseRequest, asked: WatchRequest) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        await response.prepare(request)
        events = watch(self.storage, self.renderer, asked, self.bookmark_interval)
        # Most watches end because the client closes the connection.
        with contextlib.suppress(ConnectionError):
            async with contextlib.aclosing(events):
                async for part in events:
                    await response.write(part)
            await response.write_eof()
        return response

    def _static(self, request: web.BaseRequest, segments: list[str]) -> web.StreamResponse:
        path = "/" + "/".join(segments)
        if request.method != "GET":
            raise statuses.method_not_allowed()
        if path in _HEALTH or segments[0] in {"readyz", "livez", "healthz"}:
            return web.Response(text="ok")
        if path == "/version":
            return _json(encode(discovery.version_info()))
        if segments[0] in {"api", "apis"}:
            return self._discover(request, segments)
        if path == "/openapi/v2":
            return _openapi_v2(request.headers.get("Accept", ""))
        if segments[0] == "openapi":
            document = openapi.document(self.registry, segments[1:])
            if document is not None:
                return _json(encode(document))
        if path == "/":
            return _json(encode({"paths": self._paths()}))
        return _missing()

    def _paths(self) -> list[str]:
        groups = self.registry.groups()
        return ["/api", "/api/v1", "/apis", *(f"/apis/{group}" for group in groups), "/version"]

    def _discover(self, request: web.BaseRequest, segments: list[str]) -> web.StreamResponse:
        registry = self.registry
        if len(segments) == 1:
            form = wanted_form(request.headers.get("Accept", ""))
            groups = [""] if segments[0] == "api" else registry.groups()
            if form.name == "discovery":
                return _discovery(
                    encode(discovery.discovery_list(registry, groups, form.api_version)), form
                )
            if segments[0] == "api":
                return _json(encode(discovery.api_versions()))
            return _json(encode(discovery.api_groups(registry)))
        if segments[0] == "api":
            found = discovery.resource_list(registry, "", segments[1])
        elif len(segments) == 2:
            found = discovery.api_groups(registry, segments[1])
        else:
            found = discovery.resource_list(registry, segments[1], segments[2])
        return _json(encode(found)) if found is not None else _missing()


def make_request(
    message: http_parser.RawRequestMessage,
    payload: streams.StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """A request of aiohttp's that takes bodies of the size that kube-apiserver takes."""
    return web.BaseRequest(
        message,
        payload,
        protocol,
        writer,
        task,
        asyncio.get_running_loop(),
        client_max_size=MAX_BODY,
    )


def _json(body: bytes, code: int = 200) -> web.Response:
    return web.Response(body=body, status=code, content_type=_JSON)


def _discovery(body: bytes, form: MediaForm) -> web.Response:
    group, _, version = form.api_version.partition("/")
    media = f"{_JSON};g={group};v={version};as=APIGroupDiscoveryList"
    return web.Response(body=body, headers={"Content-Type": media, "Vary": "Accept"})


def _openapi_v2(accept: str) -> web.Response:
    if "protobuf" in accept:
        headers = {"Content-Type": openapi.V2_PROTOBUF_TYPE}
        return web.Response(body=openapi.V2_PROTOBUF, headers=headers)
    return _json(encode(openapi.V2_JSON))


def _missing() -> web.Response:
    return web.Response(status=404, text="404 page not found\n")


def _answered(answer: HttpResponse) -> web.Response:
    response = web.Response(body=answer.body, status=answer.code, content_type=answer.media_type)
    for warning in dict.fromkeys(answer.warnings):
        text = " ".join(warning.split()).replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{text}"')
    return response
