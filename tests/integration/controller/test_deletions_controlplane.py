"""What the case table says that a watch shows of a deleted pod is what kube-apiserver sends."""

import copy
import math
import time
from typing import Any

from pumice.api import keys
from pumice.api.kinds import POD
from pumice.api.meta import parse_time
from tests.kit.builders import pod
from tests.kit.tables import table
from tests.support.controlplane.cluster import ControlPlane

Raw = dict[str, Any]

MERGE = "application/merge-patch+json"
STEP = 10
"""Seconds between two steps in the table."""


class DeletedPod:
    """A pod on a node without a kubelet, real or simulated, and what is done to it.

    Its Node does not exist, so that kwok leaves it alone. The garbage collector of pods removes
    it after 40 seconds to a minute; each row has to end before that.

    Attributes:
        times: Between which moments each step was taken, by its second in the table.
    """

    def __init__(self, plane: ControlPlane, namespace: str, name: str, *, held: bool) -> None:
        self._plane = plane
        self._path = POD.path(name, namespace)
        self._list = f"{POD.collection(namespace)}?fieldSelector=metadata.name={name}"
        self.times: dict[int, tuple[int, int]] = {}
        manifest = pod(name, namespace=namespace)
        manifest["metadata"]["finalizers"] = ["example.com/held"] if held else []
        manifest["spec"] |= {"nodeName": "nobodys", "terminationGracePeriodSeconds": 40}
        status, _ = plane.request("POST", POD.collection(namespace), manifest)
        assert status == 201
        self._set({"status": {"phase": "Running"}}, "/status")
        self._since = plane.request("GET", self._path)[1]["metadata"]["resourceVersion"]

    def do(self, second: int, step: Raw) -> None:
        """Take a step."""
        began = time.time()
        match step:
            case {"delete": None}:
                self._send("DELETE", "", {})
            case {"delete": grace}:
                self._send("DELETE", "", {"gracePeriodSeconds": grace})
            case {"evict": _}:
                name = self._path.rpartition("/")[2]
                head = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
                self._send("POST", "/eviction", head)
            case {"mark": _}:
                self._set({"metadata": {"annotations": {keys.OUT_OF_SYNC: "true"}}}, "")
            case {"status": phase}:
                self._set({"status": {"phase": phase}}, "/status")
            case {"free": _}:
                self._set({"metadata": {"finalizers": None}}, "")
        self.times[second] = math.floor(began), math.floor(time.time())

    def events(self, many: int | None) -> list[Raw]:
        """What a watch shows of it until it is gone, or the first of these events."""
        found: list[Raw] = []
        for event in self._plane.watch(f"{self._list}&resourceVersion={self._since}", 30):
            if event["type"] == "DELETED":
                break
            found.append(self._event(event["object"]))
            if len(found) == many:
                break
        return found

    def _event(self, obj: Raw) -> Raw:
        meta = obj["metadata"]
        state = {"phase": obj["status"]["phase"]}
        if keys.OUT_OF_SYNC in (meta.get("annotations") or {}):
            state["marked"] = True
        if "deletionTimestamp" not in meta:
            return state
        grace = meta["deletionGracePeriodSeconds"]
        removal = parse_time(meta["deletionTimestamp"]) or 0.0
        second = self._second(removal - grace)
        if second is None:  # a grace period that would be over already begins again
            second = (self._second(removal) or 0) - grace
        return state | {"requested": second, "grace": grace}

    def _second(self, moment: float) -> int | None:
        """The second in the table of the step that was taken at a moment."""
        found = (at for at, (least, most) in self.times.items() if least <= moment <= most)
        return next(found, None)

    def _set(self, patch: Raw, part: str) -> None:
        status, answer = self._plane.request("PATCH", self._path + part, patch, content_type=MERGE)
        assert status == 200, answer

    def _send(self, method: str, part: str, body: Raw) -> None:
        status, answer = self._plane.request(method, self._path + part, body)
        assert status < 300, answer


def test_recorded(controlplane: ControlPlane, namespace: str) -> None:
    rows = copy.deepcopy(table("controller/deletions"))
    pods = [
        DeletedPod(controlplane, namespace, f"pod-{at}", held=row.get("held", False))
        for at, row in enumerate(rows)
    ]
    for at in range(max(len(row["steps"]) for row in rows)):
        for each, row in zip(pods, rows, strict=True):
            if at < len(row["steps"]):
                each.do(STEP * (at + 1), row["steps"][at])
        time.sleep(2.0 - time.time() % 1.0)  # the next steps are taken in another second
    found = {
        row["id"]: each.events(len(row["events"]) if row.get("stays") else None)
        for each, row in zip(pods, rows, strict=True)
    }
    assert found == {row["id"]: row["events"] for row in rows}
