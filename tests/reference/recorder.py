"""Asks the real kube-scheduler: a drawn cluster in, the nodes on which each of its pods may run out.

Each cluster gets a kube-scheduler of its own, which schedules nothing before it has seen all that is there. What one cluster
leaves is deleted before the next one is written.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tests.kit.waiting import wait_until
from tests.reference.clusters import Cluster
from tests.reference.containers import RUNTIME_CLASSES
from tests.reference.extender import Extender, running_extender
from tests.reference.peers import NAMESPACES
from tests.reference.records import Record, key_of, slim
from tests.reference.volumes import STORAGE_CLASSES
from tests.support.controlplane import commands
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process

Raw = dict[str, Any]
T = TypeVar("T")

_PATHS = {
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
}
_FINALIZER = "example.com/stays"
_OURS = ("status", "isDeleted", "owner")
"""What drawn objects say beside what they are created with."""
_WRITERS = 6
_LIMIT = 60.0
"""Seconds that one cluster may take; it takes two to four."""


@contextmanager
def recording(plane: ControlPlane) -> Iterator["Recorder"]:
    """A recorder on a control plane that has no nodes and no kwok."""
    for name in NAMESPACES:
        plane.add_namespace(name)
    with running_extender() as extender, ThreadPoolExecutor(_WRITERS) as pool:
        recorder = Recorder(plane, extender, pool)
        recorder.create([*RUNTIME_CLASSES, *STORAGE_CLASSES])
        try:
            yield recorder
        finally:
            recorder.close()


class Recorder:
    """See the module."""

    def __init__(self, plane: ControlPlane, extender: Extender, pool: ThreadPoolExecutor) -> None:
        self._plane = plane
        self._extender = extender
        self._pool = pool
        self._local = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []
        self._address = urlsplit(plane.url).netloc
        self._trust = ssl.create_default_context(cafile=str(plane.ca))
        self._config = plane.folder / "kube-scheduler.json"
        self._config.write_text(json.dumps(self._configuration()))

    def record(self, cluster: Cluster) -> Record:
        """Write a cluster, ask for the nodes of each pod, and delete it again.

        Returns:
            The objects as the API server keeps them, and nodes by pod.
        """
        self._label_namespaces(cluster["namespaces"])
        stored = {"namespaces": cluster["namespaces"]}
        try:
            for part in ("nodes", "volumes", "csi_nodes", "running", "pods"):
                stored[part] = self.create(cluster[part])
            pods = {each["metadata"]["name"]: each for each in stored["pods"] + stored["running"]}
            stored["claims"] = self.create([_owned(each, pods) for each in cluster["claims"]])
            for part in ("volumes", "claims", "running"):
                stored[part] = self._each(
                    self._finish, zip(stored[part], cluster[part], strict=True)
                )
            return slim(stored, self._ask(stored["pods"]))
        finally:
            self._clear()

    def create(self, manifests: list[Raw]) -> list[Raw]:
        """Create objects; they are returned as they are kept."""
        return self._each(self._create, manifests)

    def close(self) -> None:
        """Close the connections to the API server."""
        for each in self._connections:
            each.close()

    # -- kube-scheduler ----------------------------------------------------------------------

    def _configuration(self) -> Raw:
        """As it is by default, but for what would change the answers or slow them down."""
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": str(self._plane.kubeconfig),
                "qps": 1000,
                "burst": 2000,
            },
            "leaderElection": {"leaderElect": False},
            "percentageOfNodesToScore": 100,
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
            "profiles": [
                {
                    "schedulerName": "default-scheduler",
                    "plugins": {"postFilter": {"disabled": [{"name": "*"}]}},
                }
            ],
            "extenders": [
                {
                    "urlPrefix": self._extender.url,
                    "filterVerb": "filter",
                    "nodeCacheCapable": True,
                    "httpTimeout": "10s",
                }
            ],
        }

    def _ask(self, pods: list[Raw]) -> dict[str, list[str]]:
        process = Process(
            "kube-scheduler",
            [str(self._plane.binaries["kube-scheduler"]), *commands.scheduler(self._config)],
            self._plane.folder,
        )
        try:
            wait_until(self._all_refused, "kube-scheduler to look at all pods", _LIMIT, [process])
        finally:
            process.end()
        offers = self._extender.offers
        return {key_of(pod): offers.get(pod["metadata"]["uid"], []) for pod in pods}

    def _all_refused(self) -> bool:
        found = self._request("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D")
        return all(
            any(condition["type"] == "PodScheduled" for condition in each["status"].get("conditions", ()))
            for each in found["items"]
        )  # fmt: skip

    # -- the API server ----------------------------------------------------------------------

    def _create(self, manifest: Raw) -> Raw:
        body = {key: each for key, each in manifest.items() if key not in _OURS}
        if body["kind"] == "Node":
            body["status"] = manifest["status"]
        if manifest.get("isDeleted"):
            body["metadata"] = {**body["metadata"], "finalizers": [_FINALIZER]}
        return self._request("POST", _collection(manifest), body)

    def _finish(self, stored: Raw, manifest: Raw) -> Raw:
        """Give an object the status that it was drawn with, and begin to delete it if it is to be on its way out."""
        path = f"{_collection(manifest)}/{manifest['metadata']['name']}"
        if "status" in manifest:
            stored = self._request("PATCH", f"{path}/status", {"status": manifest["status"]})
        if manifest.get("isDeleted"):
            self._request("DELETE", path, {"gracePeriodSeconds": 0})
            stored = self._request("GET", path)
        return stored

    def _label_namespaces(self, namespaces: list[Raw]) -> None:
        for each in namespaces:
            meta = each["metadata"]
            patch = {"metadata": {"labels": {"team": meta["labels"].get("team")}}}
            self._request("PATCH", f"/api/v1/namespaces/{meta['name']}", patch)

    def _clear(self) -> None:
        paths = [_PATHS[kind] for kind in ("Node", "CSINode", "PersistentVolume")]
        for kind in ("Pod", "PersistentVolumeClaim"):
            paths += [_PATHS[kind].format(namespace) for namespace in NAMESPACES]
        wait_until(lambda: self._is_clear(paths), "the cluster to be cleared", _LIMIT)

    def _is_clear(self, paths: list[str]) -> bool:
        self._each(lambda path: self._request("DELETE", path, {"gracePeriodSeconds": 0}), paths)
        left = [
            f"{path}/{each['metadata']['name']}"
            for path, found in zip(paths, self._each(lambda path: self._request("GET", path), paths), strict=True)
            for each in found["items"]
        ]  # fmt: skip
        free = {"metadata": {"finalizers": None}}
        self._each(lambda path: self._request("PATCH", path, free, may_be_gone=True), left)
        return not left

    def _each(self, call: Callable[..., T], items: Iterable[Any]) -> list[T]:
        arguments = [each if isinstance(each, tuple) else (each,) for each in items]
        return list(self._pool.map(lambda each: call(*each), arguments))

    def _request(
        self, method: str, path: str, body: Raw | None = None, *, may_be_gone: bool = False
    ) -> Raw:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(self._address, context=self._trust)
            self._local.connection = connection
            self._connections.append(connection)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._plane.admin_token}", "Content-Type": kind}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        with connection.getresponse() as response:
            answer: Raw = json.loads(response.read())
        if response.status >= 400 and not (may_be_gone and response.status == 404):
            raise AssertionError(f"{method} {path}: {response.status} {answer['message']}: {body}")
        return answer


def _collection(manifest: Raw) -> str:
    return _PATHS[manifest["kind"]].format(manifest["metadata"].get("namespace"))


def _owned(claim: Raw, pods: dict[str, Raw]) -> Raw:
    """A claim of an ephemeral volume with the reference to its pod."""
    if "owner" not in claim:
        return claim
    owner = pods[claim["owner"]]["metadata"]
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner["name"], "uid": owner["uid"]}
    reference["controller"] = True
    return claim | {"metadata": {**claim["metadata"], "ownerReferences": [reference]}}
