"""A namespace of a real cluster, written with kubectl as its user does, and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from pumice.api.kinds import EVENT, JOB, POD, POD_GROUP, Kind
from tests.kit.waiting import SECONDS, NotReadyError, wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process

_CHARACTERS = 400
"""How much is shown of an object."""

EXAMPLES = Path(__file__).parents[2] / "examples"

Raw = dict[str, Any]


def example(name: str) -> Raw:
    """A manifest of the folder `examples`."""
    manifest: Raw = yaml.safe_load((EXAMPLES / name).read_text())
    return manifest


def examples(name: str) -> list[Raw]:
    """The manifests of a file with several."""
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


class Namespace:
    """One namespace of a control plane.

    Attributes:
        plane: The control plane.
        name: The namespace's name.
    """

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.plane = plane
        self.name = name

    def kubectl(self, *arguments: str, obj: Raw | None = None, check: bool = True) -> str:
        """Run kubectl, with an object on stdin where one is given; what it printed, errors included."""
        stdin = None if obj is None else json.dumps(obj)
        ran = self.plane.kubectl(*arguments, stdin=stdin, namespace=self.name, check=check)
        return ran.stdout + ran.stderr

    def apply(self, *manifests: Raw, check: bool = True, dry_run: bool = False) -> str:
        """`kubectl apply`; what it printed, errors included."""
        options = ["--dry-run=server"] if dry_run else []
        items = {"apiVersion": "v1", "kind": "List", "items": manifests}
        return self.kubectl("apply", *options, "-f", "-", obj=items, check=check)

    def would_create(self, obj: Raw) -> Raw:
        """An object as the API server would store it."""
        arguments = ("create", "--dry-run=server", "-o", "json", "-f", "-")
        ran = self.plane.kubectl(*arguments, stdin=json.dumps(obj), namespace=self.name)
        stored: Raw = json.loads(ran.stdout)
        return stored

    def find(self, kind: Kind, name: str) -> Raw:
        """An object; empty when there is none."""
        status, found = self.plane.request("GET", kind.path(name, self.name))
        assert status in (200, 404), found
        return found if status == 200 else {}

    def get(self, kind: Kind, name: str) -> Raw:
        """An object that there is."""
        found = self.find(kind, name)
        assert found, f"there is no {kind.kind} {name}"
        return found

    def all(self, kind: Kind, selector: str = "") -> list[Raw]:
        """Objects, those with certain labels only if a selector is given."""
        query = f"?labelSelector={selector}" if selector else ""
        status, found = self.plane.request("GET", kind.collection(self.name) + query)
        assert status == 200, found
        items: list[Raw] = found["items"]
        return items

    def names(self, *kinds: Kind) -> list[str]:
        """Names of all objects of these kinds."""
        return [each["metadata"]["name"] for kind in kinds for each in self.all(kind)]

    def pods(self) -> dict[str, Raw]:
        """The pods by name."""
        return {each["metadata"]["name"]: each for each in self.all(POD)}

    def revision(self, kind: Kind) -> str:
        """The moment, as a revision of the store, from which `until` may look back."""
        status, found = self.plane.request("GET", f"{kind.collection(self.name)}?limit=1")
        assert status == 200, found
        return str(found["metadata"]["resourceVersion"])

    def until(
        self,
        kind: Kind,
        holds: Callable[[dict[str, Raw]], Any],
        what: str,
        *,
        since: str = "",
        seconds: float = SECONDS,
    ) -> Any:
        """Watch objects until something holds of them.

        Args:
            kind: Kind of the objects.
            holds: Gets the objects by name, as they were after each single change.
            what: What is waited for.
            since: A revision to begin with, so that what has passed already is seen; now when empty.
            seconds: How long to wait.

        Returns:
            What `holds` returned.

        Raises:
            NotReadyError: It took longer.
        """
        exact = f"?resourceVersion={since}&resourceVersionMatch=Exact" if since else ""
        status, found = self.plane.request("GET", kind.collection(self.name) + exact)
        assert status == 200, found
        objects: dict[str, Raw] = {each["metadata"]["name"]: each for each in found["items"]}
        if answer := holds(objects):
            return answer
        path = (
            f"{kind.collection(self.name)}?resourceVersion={found['metadata']['resourceVersion']}"
        )
        with closing(self.plane.watch(path, seconds)) as events:
            for event in events:
                assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
                obj = event["object"]
                objects[obj["metadata"]["name"]] = obj
                if event["type"] == "DELETED":
                    del objects[obj["metadata"]["name"]]
                if answer := holds(objects):
                    return answer
        seen = "\n".join(f"{name}: {each.get('status')}" for name, each in objects.items())
        raise NotReadyError(f"{what}: not after {seconds:.0f} s; last seen:\n{seen}")

    def events(self, name: str) -> str:
        """What events say of an object, a line each."""
        about = [each for each in self.all(EVENT) if each["involvedObject"]["name"] == name]
        return "\n".join(each["message"] for each in about)

    def state(self, job: str) -> Raw:
        """`status.state` of a Volcano Job."""
        state: Raw = self.get(JOB, job).get("status", {}).get("state", {})
        return state

    def phase(self, job: str) -> str:
        """The phase of a Volcano Job."""
        return str(self.state(job).get("phase", ""))

    def await_phase(
        self, job: str, *phases: str, seconds: float = 90, processes: Sequence[Process] = ()
    ) -> None:
        """Wait until a Volcano Job is in one of these phases, while processes run.

        Raises:
            NotReadyError: It took longer; with the states of the namespace's Job, PodGroups and pods.
        """
        __tracebackhide__ = True
        wait_until(
            lambda: self.phase(job) in phases,
            f"{job} is {phases}",
            seconds,
            processes,
            around=self._overview,
        )

    def _overview(self) -> str:
        """What makes pods run, a line each: phase or state, and as much of the status as there is room for."""
        lines = []
        for kind in (JOB, POD_GROUP, POD):
            for each in self.all(kind):
                about = f"{kind.kind} {each['metadata']['name']} {each['spec'].get('nodeName', '')}"
                status = each.get("status") or {}
                phase = status.get("phase", status.get("state"))
                lines.append(f"{about}: {phase} of {status}"[:_CHARACTERS])
        return "\n".join(lines)
