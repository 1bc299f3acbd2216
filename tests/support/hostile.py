"""What a tenant may submit to harm others: each attack stays within what admission and RBAC allow its user.

Each is an input that once stopped a component, or held up all other tenants. `Hostile.attack` submits all of them at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pumice.api.kinds import JOB, JOB_FLOW, JOB_TEMPLATE, Kind
from pumice.cluster.client import Client
from pumice.cluster.errors import AlreadyExists, ApiError
from tests.kit.builders import job, task

Raw = dict[str, Any]

ATTEMPTS = 5
"""How often an object is sent to an API server that is too busy, or away."""

NOWHERE = {"nodeSelector": {"no": "such-node"}}
"""A pod spec that fits no node."""


@dataclass(frozen=True)
class Sizes:
    """How much a hostile tenant submits.

    Attributes:
        flows: How often a JobFlow with two flows of one name is created, changed and deleted.
        repelling: Tasks of one gang, each with a label of its own and an anti-affinity to all other tasks. 1,500 are 708 KB.
        labels: Labels of a pod template, halved until admission takes the Job.
        annotations: Bytes of annotations of a pod template, halved likewise.
        copies: Pods of each of these templates.
        jobs: Jobs of `pods` pods each.
        pods: Pods of each.
        held: Tasks that depend on as many as `dependencies` others.
        dependencies: Those, which never run.
    """

    flows: int = 20
    repelling: int = 1500
    labels: int = 30_000
    annotations: int = 2**18
    copies: int = 50
    jobs: int = 8
    pods: int = 400
    held: int = 250
    dependencies: int = 300

    @property
    def created(self) -> int:
        """Pods that are created, once all Jobs have been taken up."""
        return self.repelling + 2 * self.copies + self.jobs * self.pods + self.dependencies


class Hostile:
    """A tenant who attacks.

    Attributes:
        answers: How often the API server admitted or refused what was sent, by attack and answer.
    """

    def __init__(self, client: Client, namespace: str, spec: Raw | None = None) -> None:
        """Describe the tenant.

        Args:
            client: The tenant's session with the API server.
            namespace: The tenant's namespace.
            spec: Merged into the spec of all pods, such as a node selector.
        """
        self.answers: Counter[str] = Counter()
        self._client = client
        self._namespace = namespace
        self._spec = spec or {}

    async def attack(self, sizes: Sizes) -> None:
        """Submit everything at once; it returns when all is submitted."""
        await asyncio.gather(
            self.flows(sizes.flows),
            self._submit("repelling", repelling(sizes.repelling, self._spec)),
            self._largest("labels", sizes.labels, lambda n: self._labelled(n, sizes.copies)),
            self._largest("notes", sizes.annotations, lambda n: self._annotated(n, sizes.copies)),
            *(self._submit("wide", self._wide(number, sizes.pods)) for number in range(sizes.jobs)),
            self._submit("held", held(sizes.held, sizes.dependencies)),
        )

    async def flows(self, rounds: int) -> None:
        """A JobFlow with two flows of one name: created, changed and deleted."""
        await self._create("template", JOB_TEMPLATE, _template("same"))
        for number in range(rounds):
            flow = _flow(f"double-{number}", "same")
            await self._create("flow", JOB_FLOW, flow)
            for change in ({"labels": {"changed": "once"}}, {"annotations": {"changed": "twice"}}):
                await self._try("change of flow", self._change(flow, change))
            await self._try("deletion of flow", self._delete(flow))

    async def clear(self) -> None:
        """Delete all Jobs, with their pods."""
        options = {"propagationPolicy": "Background"}
        await self._try(
            "clear", self._client.raw("DELETE", JOB.collection(self._namespace), options)
        )

    def _change(self, flow: Raw, metadata: Raw) -> Awaitable[object]:
        name = flow["metadata"]["name"]
        return self._client.patch(JOB_FLOW, name, self._namespace, {"metadata": metadata})

    def _delete(self, flow: Raw) -> Awaitable[object]:
        name = flow["metadata"]["name"]
        return self._client.delete(JOB_FLOW, name, self._namespace, propagation="Background")

    async def _submit(self, attack: str, manifest: Raw) -> bool:
        return await self._create(attack, JOB, manifest)

    async def _largest(self, attack: str, size: int, manifest: Callable[[int], Raw]) -> None:
        """Submit the largest Job that is admitted."""
        while size and not await self._submit(attack, manifest(size)):
            size //= 2
        self.answers[f"{attack}: largest"] = size

    async def _create(self, attack: str, kind: Kind, manifest: Raw) -> bool:
        """Create an object; again if the API server had no time for it, which may have created it all the same."""
        for _ in range(ATTEMPTS):
            try:
                await self._client.create(kind, manifest, self._namespace)
            except AlreadyExists:
                break
            except ApiError as error:
                self.answers[f"{attack}: {error.status} {error.reason}"] += 1
                if 0 < error.status < 500:
                    return False
            else:
                break
        else:
            return False
        self.answers[f"{attack}: admitted"] += 1
        return True

    async def _try(self, attack: str, request: Awaitable[object]) -> None:
        """Send a request; a refusal is an answer like any other."""
        try:
            await request
        except ApiError as error:
            self.answers[f"{attack}: {error.status} {error.reason}"] += 1
        else:
            self.answers[f"{attack}: admitted"] += 1

    def _labelled(self, labels: int, copies: int) -> Raw:
        metadata = {"labels": {f"label-{number}": "" for number in range(labels)}}
        return self._of("labelled", _described(metadata, self._spec, copies), copies)

    def _annotated(self, size: int, copies: int) -> Raw:
        metadata = {"annotations": {"note": "x" * size}}
        return self._of("annotated", _described(metadata, self._spec, copies), copies)

    def _wide(self, number: int, pods: int) -> Raw:
        return self._of(f"wide-{number}", task("w", pods, cpu="10m", spec=self._spec), pods)

    def _of(self, name: str, one: Raw, minimum: int) -> Raw:
        return _job(name, [one], minimum)


def repelling(tasks: int, spec: Raw | None = None) -> Raw:
    """A gang whose tasks each prefer to be on no node of another one, each by a rule of its own."""

    def rule(number: int) -> Raw:
        others = {"key": "own", "operator": "NotIn", "values": [f"label-{number}"]}
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [others]},
        }
        preferred = [{"weight": 5, "podAffinityTerm": term}]
        return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}

    def one(number: int) -> Raw:
        pod = (spec or {}) | {"restartPolicy": "Never", "affinity": rule(number)}
        found = task(f"t{number}", 1, cpu="10m", spec=pod)
        found["template"]["metadata"] = {"labels": {"own": f"label-{number}"}}
        return found

    return _job("repelling", [one(number) for number in range(tasks)], tasks)


def held(tasks: int, dependencies: int) -> Raw:
    """A Job of tasks that wait for many others, none of which ever runs."""
    others = [task(f"other-{number}", 1, cpu="10m", spec=NOWHERE) for number in range(dependencies)]
    names = [each["name"] for each in others]
    waiting = [task(f"held-{number}", 1, dependsOn={"name": names}) for number in range(tasks)]
    return _job("held", others + waiting, 1)


def _described(metadata: Raw, spec: Raw, copies: int) -> Raw:
    found = task("w", copies, cpu="10m", spec=spec)
    found["template"]["metadata"] = metadata
    return found


def _job(name: str, tasks: list[Raw], minimum: int) -> Raw:
    manifest = job(name, tasks, minAvailable=minimum, queue="default")
    del manifest["metadata"]["namespace"]
    return manifest


def _template(name: str) -> Raw:
    spec = {"minAvailable": 1, "tasks": [task("w", 1, cpu="10m")]}
    return _object(JOB_TEMPLATE, name, spec)


def _flow(name: str, template: str) -> Raw:
    spec = {"jobRetainPolicy": "delete", "flows": [{"name": template}, {"name": template}]}
    return _object(JOB_FLOW, name, spec)


def _object(kind: Kind, name: str, spec: Raw) -> Raw:
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    return head | {"metadata": {"name": name}, "spec": spec}
