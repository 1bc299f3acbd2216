"""Requests for objects: from method, path, query and body to a response."""

from dataclasses import replace
from typing import Any

from pumice.api.fields import FieldError
from pumice.embedded import patches, schemas, selectors, statuses
from pumice.embedded.apply import apply
from pumice.embedded.deletion import Deleted, DeleteOptions, delete
from pumice.embedded.http_messages import HttpRequest, HttpResponse
from pumice.embedded.objects import Objects
from pumice.embedded.pod_streams import command_request, log_request
from pumice.embedded.rendering import Continue, Renderer
from pumice.embedded.resources import Call, Target
from pumice.embedded.storage import Obj, Version, encode
from pumice.embedded.strategies import field_required
from pumice.embedded.subresources import bind, scale_of, scaled
from pumice.embedded.watching import WatchRequest


class Handlers:
    """Answers requests for objects.

    Args:
        objects: The objects.
        renderer: Renders them.
        with_containers: Whether pods have containers that write logs and run commands.
    """

    def __init__(
        self,
        objects: Objects,
        renderer: Renderer,
        *,
        with_containers: bool = False,
    ) -> None:
        self._with_containers = with_containers
        self._objects = objects
        self._renderer = renderer

    def answer(self, ask: HttpRequest) -> HttpResponse:
        """Answer a request.

        Raises:
            ApiStatusError: What went wrong.
        """
        target, method = ask.target, ask.method
        if method == "GET":
            if target.name and not target.watch:
                return self._get(ask)
            return self._watch(ask) if target.watch or ask.flag("watch") else self._list(ask)
        call = ask.call()
        try:
            return self._change(ask, call)
        except statuses.ApiStatusError as error:
            error.warnings = call.warnings
            raise

    def _change(self, ask: HttpRequest, call: Call) -> HttpResponse:
        target, method = ask.target, ask.method
        subresource = target.resource.subresource(target.subresource)
        if target.subresource and subresource is None:
            raise _no_subresource(target)
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method)
        if verb is None or (subresource is not None and verb not in subresource.verbs):
            raise statuses.method_not_allowed()
        match verb:
            case "update" | "patch" if target.subresource == "scale":
                return self._scale(ask, call)
            case "create" if target.subresource:
                return self._create_below(ask, call)
            case "create" if not target.name:
                return self._create(ask, call)
            case "update" if target.name:
                version = self._objects.update(call, _object(ask.decoded()))
                return self._one(ask, call, version)
            case "patch" if target.name:
                return self._patch(ask, call)
            case "delete" if target.name:
                return self._delete(ask, call)
            case "delete":
                return self._delete_collection(ask, call)
            case _:
                raise statuses.method_not_allowed()

    def _one(self, ask: HttpRequest, call: Call, version: Version, code: int = 200) -> HttpResponse:
        body = self._renderer.one(
            call.resource, version, ask.form(), ask.query.get("includeObject", "")
        )
        return HttpResponse(body, code, call.warnings)

    def _get(self, ask: HttpRequest) -> HttpResponse:
        target = ask.target
        if target.subresource:
            subresource = target.resource.subresource(target.subresource)
            if subresource is None:
                raise _no_subresource(target)
            if "get" not in subresource.verbs:
                raise statuses.method_not_allowed()
        call = Call(target.resource, target.namespace, target.name)
        version = self._objects.get(call)
        if target.subresource == "log" or target.subresource in _STREAMS:
            return self._of_containers(ask, version.obj)
        if target.subresource == "scale":
            return HttpResponse(encode(scale_of(version.obj)))
        return self._one(ask, call, version)

    def _of_containers(self, ask: HttpRequest, pod: Obj) -> HttpResponse:
        """What only the containers of a pod can answer."""
        target = ask.target
        if not self._with_containers:
            if target.subresource != "log":
                raise statuses.bad_request(f"{_SIMULATED}, so pods have no {target.subresource}")
            text = f"{_SIMULATED}, so pod {target.namespace}/{target.name} has no output\n"
            if ask.flag("timestamps"):
                text = f"{(pod.get('status') or {}).get('startTime', _EPOCH)} {text}"
            return HttpResponse(text.encode(), media_type="text/plain")
        if target.subresource == "log":
            return HttpResponse(stream=log_request(pod, ask.query), media_type="text/plain")
        if target.subresource != "exec":
            message = f"pods of this cluster have no {target.subresource}: use `kubectl logs -f` or `kubectl exec`"
            raise statuses.bad_request(message)
        return HttpResponse(stream=command_request(pod, ask.query, ask.values("command")))

    def _create(self, ask: HttpRequest, call: Call) -> HttpResponse:
        obj = _object(ask.decoded())
        if call.resource.kind.namespaced and not call.namespace:
            raise statuses.method_not_allowed()
        return self._one(ask, call, self._objects.create(call, obj), 201)

    def _create_below(self, ask: HttpRequest, call: Call) -> HttpResponse:
        if call.subresource in _STREAMS:
            return self._get(ask)
        body = _object(ask.decoded())
        if call.subresource == "binding":
            schemas.check(schemas.BINDING, body, "Binding", "v1")
            bind(self._objects, call, body)
        else:
            schemas.check(schemas.EVICTION, body, "Eviction", "v1")
            options = _checked(body.get("deleteOptions") or {})
            call.dry_run = ask.dry_run(options.get("dryRun")) or call.dry_run
            delete(self._objects, call, DeleteOptions.read(options, {}))
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }
        return HttpResponse(encode(status), 201, call.warnings)

    def _patch(self, ask: HttpRequest, call: Call) -> HttpResponse:
        kind = ask.headers.get("Content-Type", "").partition(";")[0].strip()
        patches.check_type(call.resource, kind)
        patch = ask.decoded()
        if kind == patches.APPLY:
            if "fieldManager" not in ask.query:
                raise statuses.invalid_options(
                    "PatchOptions", field_required("fieldManager", "is required for apply patch")
                )
            version, created = apply(self._objects, call, _object(patch))
            return self._one(ask, call, version, 201 if created else 200)
        version = self._objects.change(
            call, lambda current: patches.patched(kind, current.copy(), patch)
        )
        return self._one(ask, call, version)

    def _scale(self, ask: HttpRequest, call: Call) -> HttpResponse:
        kind = ask.headers.get("Content-Type", "").partition(";")[0].strip()
        body = ask.decoded()
        is_patch = ask.method == "PATCH"
        if is_patch and kind not in (patches.MERGE_PATCH, patches.JSON_PATCH):
            raise statuses.unsupported_media_type((patches.JSON_PATCH, patches.MERGE_PATCH))

        def change(current: Version) -> Obj:
            scale = patches.patched(kind, scale_of(current.obj), body) if is_patch else body
            return scaled(call, current.copy(), _object(scale))

        workload = replace(call, subresource="")  # it is the object that is validated and stored
        version = self._objects.change(workload, change)
        return HttpResponse(encode(scale_of(version.obj)), 200, call.warnings)

    def _delete(self, ask: HttpRequest, call: Call) -> HttpResponse:
        deleted = delete(self._objects, call, self._options(ask, call))
        if deleted.gone and not call.resource.strategy.returns_deleted:
            uid = deleted.version.obj["metadata"]["uid"]
            body = encode(statuses.success(call.resource.kind, call.name, uid))
            return HttpResponse(body, 200, call.warnings)
        return self._one(ask, call, deleted.version)

    def _delete_collection(self, ask: HttpRequest, call: Call) -> HttpResponse:
        options = self._options(ask, call)
        deleted: list[Deleted] = []
        for version in self._selected(
            ask, self._objects.storage.table(call.resource.key).items(ask.namespace)
        ):
            metadata = version.obj["metadata"]
            each = Call(
                call.resource,
                metadata.get("namespace", ""),
                metadata["name"],
                dry_run=call.dry_run,
                warnings=call.warnings,
            )
            deleted.append(delete(self._objects, each, options))
        metadata = {"resourceVersion": str(self._objects.storage.revision)}
        versions = [each.version for each in deleted]
        body = self._renderer.many(call.resource, versions, ask.form(), metadata)
        return HttpResponse(body, 200, call.warnings)

    def _options(self, ask: HttpRequest, call: Call) -> DeleteOptions:
        body = _checked(_object(ask.decoded())) if ask.body.strip() else {}
        call.dry_run = ask.dry_run(body.get("dryRun")) or call.dry_run
        return DeleteOptions.read(body, ask.query)

    def _selected(self, ask: HttpRequest, versions: list[Version]) -> list[Version]:
        selected = ask.selector()
        if selected is selectors.everything:
            return versions
        return [each for each in versions if selected(each.obj)]

    def _list(self, ask: HttpRequest) -> HttpResponse:
        storage, resource = self._objects.storage, ask.target.resource
        table = storage.table(resource.key)
        revision = storage.revision
        after: tuple[str, str] | None = None
        if ask.query.get("continue"):
            token = Continue.decode(ask.query["continue"])
            revision, after = token.revision, (token.namespace, token.name)
        elif asked := ask.number("resourceVersion"):
            if asked > revision:
                raise statuses.too_large_version(asked, revision)
            if ask.query.get("resourceVersionMatch") == "Exact":
                revision = asked
        try:
            versions = table.items_at(revision, ask.namespace)
        except statuses.ApiStatusError as error:
            raise statuses.expired(_EXPIRED_PAGE if after else _EXPIRED_LIST) from error
        versions = self._selected(ask, versions)
        if after is not None:
            versions = [each for each in versions if _key(each) > after]
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        limit = ask.number("limit")
        if limit and len(versions) > limit:
            namespace, name = _key(versions[limit - 1])
            metadata["continue"] = Continue(revision, namespace, name).encode()
            metadata["remainingItemCount"] = len(versions) - limit
            versions = versions[:limit]
        include = ask.query.get("includeObject", "")
        return HttpResponse(self._renderer.many(resource, versions, ask.form(), metadata, include))

    def _watch(self, ask: HttpRequest) -> HttpResponse:
        target = ask.target
        fields = ask.query.get("fieldSelector", "")
        if target.name:
            fields = ",".join(filter(None, (fields, f"metadata.name={target.name}")))
        initial = ask.flag("sendInitialEvents")
        if initial and ask.query.get("resourceVersionMatch") != "NotOlderThan":
            message = (
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
            error = FieldError(
                "resourceVersionMatch", message, "API-FORBIDDEN", "FieldValueForbidden"
            )
            raise statuses.invalid_options("ListOptions", error)
        return HttpResponse(
            watch=WatchRequest(
                resource=target.resource,
                namespace=ask.namespace,
                revision=ask.number("resourceVersion") or None,
                selector=ask.selector(fields),
                bookmarks=ask.flag("allowWatchBookmarks"),
                initial_events=initial,
                timeout=float(ask.number("timeoutSeconds") or 1800),
                form=ask.form(),
                include=ask.query.get("includeObject", ""),
            )
        )


def _no_subresource(target: Target) -> statuses.ApiStatusError:
    refuse = statuses.not_scalable if target.subresource == "scale" else statuses.not_found
    return refuse(target.resource.kind, target.name)


_EPOCH = "1970-01-01T00:00:00Z"
_SIMULATED = "nodes of this cluster are simulated: no container is started"
_STREAMS = ("attach", "exec", "portforward")
_EXPIRED_LIST = "The resourceVersion for the provided list is too old."
_EXPIRED_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You must start "
    "a new list without the continue parameter."
)


def _object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise statuses.bad_request("the body must be an object")
    return body


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    schemas.check(schemas.DELETE_OPTIONS, options, "DeleteOptions", "v1")
    return options


def _key(version: Version) -> tuple[str, str]:
    metadata = version.obj["metadata"]
    return (metadata.get("namespace", ""), metadata["name"])
