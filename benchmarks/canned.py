"""An API server with one fixed cluster: lists in pages, watches without events, Leases, and writes, which it counts.

Pages are created from a template when they are requested, so 140,000 pods of 4 KB take no memory here. A write only
increases the resourceVersion, as in etcd; a Lease is stored. `benchmarks/restart.py` runs this as a separate process.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable

from aiohttp import web

SIZE = 20
"""Pods of a gang that runs."""
GANG = 8
"""Pods of the gang that waits."""

TIME = "2025-01-01T00:00:00Z"


def template(obj: object) -> str:
    """The JSON of an object as a format string: `@name@` becomes `%(name)s`."""
    text = json.dumps(obj, separators=(",", ":")).replace("%", "%%")
    parts = text.split("@")
    return "".join(f"%({part})s" if odd % 2 else part for odd, part in enumerate(parts))


def meta(name: str, namespace: str = "", **more: object) -> dict[str, object]:
    """Metadata as API servers send it."""
    fields = (
        "spec",
        "containers",
        "env",
        "image",
        "resources",
        "volumeMounts",
        "terminationMessagePath",
    )
    managed = [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": TIME,
            "fieldsType": "FieldsV1",
            "fieldsV1": {f"f:{part}": {f"f:{field}": {} for field in fields} for part in parts},
        }
        for manager, parts in (
            ("pumice", ("metadata", "spec")),
            ("kubelet", ("status", "conditions")),
        )
    ]
    found = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "900",
        "creationTimestamp": TIME,
    }
    return {
        **found,
        **({"namespace": namespace} if namespace else {}),
        **more,
        "managedFields": managed,
    }


def pod(name: str, gang: str, node: str, cpu: str) -> dict[str, object]:
    """A pod of 4 KB; it runs if it has a node."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/training:2025.01.01",
        "command": ["python", "-m", "train"],
        "args": [f"--flag-{number}=value-{number}" for number in range(8)],
        "env": [
            {"name": f"VARIABLE_{number}", "value": f"value of {number}"} for number in range(12)
        ],
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "volumeMounts": [
            {"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets"}
        ],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": gang or "daemon",
        "uid": "uid-owner",
        "controller": True,
    }
    spec: dict[str, object] = {
        "schedulerName": "volcano" if gang else "default-scheduler",
        "containers": [container],
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for taint in ("not-ready", "unreachable")
        ],
        "restartPolicy": "Never",
        "priority": 0,
        "serviceAccountName": "default",
    }
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    status: dict[str, object] = {"phase": "Pending", "qosClass": "Burstable"}
    if node:
        spec["nodeName"] = node
        status |= {
            "phase": "Running",
            "conditions": [
                {"type": each, "status": "True", "lastProbeTime": None, "lastTransitionTime": TIME}
                for each in types
            ],
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "startTime": TIME,
            "containerStatuses": [
                {
                    "name": "main",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": TIME}},
                    "image": container["image"],
                    "imageID": "sha256:" + "0" * 64,
                }
            ],
        }
    annotations = (
        {"scheduling.k8s.io/group-name": gang, "volcano.sh/task-spec": "worker"} if gang else {}
    )
    labels = {"app": "training", "volcano.sh/job-name": gang or "daemon"}
    about = meta(name, "default", labels=labels, annotations=annotations, ownerReferences=[owner])
    return {"metadata": about, "spec": spec, "status": status}


def node() -> dict[str, object]:
    """A ready node."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    labels = {
        "kubernetes.io/hostname": "@name@",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": "a",
    }
    return {
        "metadata": meta("@name@", labels=labels),
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [
                {"names": [f"registry.example.com/image-{number}:1"], "sizeBytes": number}
                for number in range(20)
            ],
        },
    }


def pod_group(least: int, status: dict[str, object]) -> dict[str, object]:
    """A PodGroup."""
    spec = {"minMember": least, "queue": "default"}
    return {"metadata": meta("@name@", "default"), "spec": spec, "status": status}


class Cluster:
    """The objects of the cluster, by plural and number."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._nodes, gangs = nodes, pods // SIZE * 3 // 4
        self._ganged = gangs * SIZE
        running = {
            "phase": "Running",
            "running": SIZE,
            "conditions": [
                {
                    "type": "Scheduled",
                    "status": "True",
                    "reason": "tasks in gang are ready to be scheduled",
                    "transitionID": "cycle-1",
                    "lastTransitionTime": TIME,
                }
            ],
        }
        self._running = template(pod("@name@", "@gang@", "@node@", "1"))
        self._other = template(pod("@name@", "", "@node@", "500m"))
        self._waiting = template(pod("@name@", "waiting", "", "1"))
        self._group = template(pod_group(SIZE, running))
        self._waiting_group = template(pod_group(GANG, {"phase": "Pending"}))
        self._node = template(node())
        queue = json.dumps(
            {"metadata": meta("default"), "spec": {"weight": 1}, "status": {"state": "Open"}}
        )
        self._counts = {"nodes": nodes, "pods": pods + GANG, "podgroups": gangs + 1, "queues": 1}
        self._makers: dict[str, Callable[[int], str]] = {
            "nodes": lambda number: self._node % {"name": f"node-{number:05}"},
            "pods": self._pod,
            "podgroups": self._pod_group,
            "queues": lambda _: queue,
        }

    def _pod(self, number: int) -> str:
        where = {"node": f"node-{number % self._nodes:05}"}
        if number < self._ganged:
            gang = f"gang-{number // SIZE:05}"
            return self._running % {"name": f"{gang}-worker-{number % SIZE}", "gang": gang, **where}
        if number < self._counts["pods"] - GANG:
            return self._other % {"name": f"other-{number}", **where}
        return self._waiting % {"name": f"waiting-worker-{number}"}

    def _pod_group(self, number: int) -> str:
        if number < self._counts["podgroups"] - 1:
            return self._group % {"name": f"gang-{number:05}"}
        return self._waiting_group % {"name": "waiting"}

    def page(self, plural: str, first: int, limit: int, version: int) -> bytes:
        """One page of a list."""
        count = self._counts.get(plural, 0)
        last = min(first + limit, count)
        items = ",".join(map(self._makers[plural], range(first, last))) if last > first else ""
        token = f',"continue":"{last}"' if last < count else ""
        return f'{{"metadata":{{"resourceVersion":"{version}"{token}}},"items":[{items}]}}'.encode()


class Server:
    """Answers the scheduler, and the benchmark at `/report`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._version = 1000
        self._lease: dict[str, object] | None = None
        self._requests: Counter[str] = Counter()
        self._first_bind = 0.0
        self._last_bind = 0.0
        self._listed = 0.0
        self._led = 0.0
        self.app = web.Application(client_max_size=1 << 24)
        self.app.router.add_get("/report", self._report)
        self.app.router.add_route("*", "/{path:.*}", self._answer)

    async def _report(self, request: web.Request) -> web.Response:
        del request
        return web.json_response(
            {
                "first_bind": self._first_bind,
                "last_bind": self._last_bind,
                "requests": self._requests,
                "listed": self._listed,
                "led": self._led,
            }
        )

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if "leases" in parts:
            return await self._keep_lease(request)
        if request.method == "GET":
            if request.query.get("watch"):
                self._requests[f"watch {parts[-1]}"] += 1
                return await self._watch(request)
            self._requests[f"list {parts[-1]}"] += 1
            if parts[-1] == "pods":
                self._listed = time.monotonic()
            first, limit = (
                int(request.query.get("continue", 0)),
                int(request.query.get("limit", 1 << 30)),
            )
            body = self._cluster.page(parts[-1], first, limit, self._version)
            return web.Response(body=body, content_type="application/json")
        if parts[-1] == "binding":
            self._last_bind = time.monotonic()
            self._first_bind = self._first_bind or self._last_bind
        named = parts[-1] if parts[-1] in ("binding", "status", "eviction") else ""
        kind = next(
            each for each in ("pods", "podgroups", "events", "queues", "nodes") if each in parts
        )
        self._requests[f"{request.method} {kind} {named}".strip()] += 1
        obj = await request.json()
        self._version += 1
        obj.setdefault("metadata", {})["resourceVersion"] = str(self._version)
        return web.json_response(obj, status=201 if request.method == "POST" else 200)

    async def _keep_lease(self, request: web.Request) -> web.Response:
        self._requests[f"{request.method} leases"] += 1
        if request.method != "GET":
            self._led = self._led or time.monotonic()
            self._version += 1
            self._lease = await request.json()
            assert self._lease is not None
            self._lease["metadata"]["resourceVersion"] = str(self._version)  # type: ignore[index]
        if self._lease is None:
            return web.json_response(
                {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404},
                status=404,
            )
        return web.json_response(self._lease)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """No event; a bookmark two seconds before the end, as kube-apiserver does."""
        answer = web.StreamResponse()
        answer.content_type = "application/json"
        await answer.prepare(request)
        seconds = float(request.query["timeoutSeconds"])
        await asyncio.sleep(max(seconds - 2, 0))
        mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self._version)}}}
        await answer.write(json.dumps(mark).encode() + b"\n")
        await asyncio.sleep(min(seconds, 2))
        return answer


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    server = Server(Cluster(options.nodes, options.pods))
    web.run_app(
        server.app,
        host="127.0.0.1",
        port=options.port,
        print=None,
        access_log=None,
        shutdown_timeout=0,
    )


if __name__ == "__main__":
    main()
