"""Requests to an API server as its administrator, and the objects that are made by them."""

from __future__ import annotations

import http.client
import json
import math
import ssl
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pumice.api.crds import all_crds
from pumice.api.kinds import of_object
from tests.kit.waiting import wait_until
from tests.support.controlplane.connections import Connections

Answer = tuple[int, dict[str, Any]]


class ApiServer:
    """An API server on loopback.

    Attributes:
        url: Where it listens, `https://127.0.0.1:PORT`.
        ca: Path of the CA certificate that signed its serving certificate.
        admin_token: The administrator's bearer token.
    """

    def __init__(self, url: str, ca: Path, admin_token: str) -> None:
        self.url = url
        self.ca = ca
        self.admin_token = admin_token
        self._connections = Connections(url, self.ca)
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),  # loopback is never behind a proxy
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(self.ca))),
        )

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        content_type: str = "application/json",
        token: str | None = None,
    ) -> Answer:
        """One request to the API server.

        Args:
            method: The HTTP method.
            path: Path and query, such as `/api/v1/nodes?limit=1`.
            body: What to send as JSON.
            content_type: Of the body; a patch names its kind here.
            token: Whose bearer token to use; the administrator's unless given.

        Returns:
            The status code and the decoded object (errors are a `Status`).
        """
        headers = {"Authorization": f"Bearer {token or self.admin_token}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = content_type
        status, answer = self._connections.exchange(method, path, data, headers)
        return status, _decoded(answer)

    def ready(self) -> bool:
        """Whether the API server says that it is ready, with etcd."""
        try:
            return self.request("GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def close(self) -> None:
        """Close what is kept open for further requests."""
        self._connections.close()

    def watch(self, path: str, seconds: float) -> Generator[dict[str, Any], None, None]:
        """Events of a watch until it has lasted for so many seconds.

        Args:
            path: Path and query of the watch, without its time.
            seconds: How long the API server keeps it open.
        """
        headers = {"Authorization": f"Bearer {self.admin_token}"}
        url = f"{self.url}{path}&watch=1&timeoutSeconds={max(1, math.ceil(seconds))}"
        request = urllib.request.Request(url, headers=headers)
        with self._opener.open(request, timeout=seconds + 60) as response:
            for line in response:
                yield json.loads(line)

    def apply(self, *manifests: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Apply objects without what kubectl takes for it: a quarter second, half of it of the API server.

        For a kind that Pumice does not know, the resource is named as the kind, in small letters, with `s` at the end.

        Returns:
            The objects as they are stored.
        """
        found = []
        query = "fieldManager=tests&force=true&fieldValidation=Strict"  # as kubectl has it
        for each in manifests:
            path = _path(each)
            status, answer = self.request(
                *("PATCH", f"{path}?{query}", each),
                content_type="application/apply-patch+yaml",
            )
            assert status in (200, 201), f"PATCH {path}: {status} {answer.get('message')}"
            found.append(answer)
        return found

    def delete(self, *manifests: Mapping[str, Any]) -> None:
        """Begin to delete objects like those of `apply`; those that are not there are no mistake."""
        for each in manifests:
            status, answer = self.request("DELETE", _path(each))
            assert status in (200, 202, 404), answer

    def establish(self) -> None:
        """Have Pumice's CRDs as they are in this checkout, and wait until they are served."""
        self.define(*all_crds())

    def define(self, *crds: Mapping[str, Any]) -> None:
        """Have CRDs, and wait until they are served."""
        wait_until(lambda: all(map(_established, self.apply(*crds))), "the CRDs to be served", 30)

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object; returns it as it is stored."""
        status, answer = self.request("POST", path, body)
        assert status == 201, f"POST {path}: {status} {answer.get('message')}"
        return answer


def _established(crd: Mapping[str, Any]) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError:
        return {"message": raw.decode(errors="replace")}
    return answer if isinstance(answer, dict) else {"message": answer}


def _path(manifest: Mapping[str, Any]) -> str:
    """Where an object is."""
    kind, metadata = of_object(dict(manifest)), manifest["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace")
    if kind is not None:
        return kind.path(name, namespace)
    version = manifest["apiVersion"]
    place = f"namespaces/{namespace}/" if namespace else ""
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{group}/{place}{manifest['kind'].lower()}s/{name}"
