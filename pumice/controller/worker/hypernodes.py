"""The controller of HyperNodes.

One key is for the discovery as a whole, because labels of one Node change several HyperNodes. A pass runs a second
after a change, so that changes of many Nodes are handled together. The same pass counts the Nodes of each HyperNode.
Each HyperNode whose count differs has a key of its own, because a status is written with its object.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pumice.api.hypernodes import HyperNode
from pumice.api.kinds import CONFIG_MAP, HYPER_NODE, NODE
from pumice.api.meta import ApiStruct, Raw
from pumice.cluster.cache import WatchCache
from pumice.cluster.events import Reference
from pumice.cluster.set_aside import RetryTimers
from pumice.cluster.turns import no_namespace
from pumice.controller.hypernodes import OFF, NodeCounter, plan_discovery
from pumice.controller.plan import PatchStatus, Plan
from pumice.controller.worker.controller import Controller, PlannedObject, Source
from pumice.controller.worker.process import ControllerProcess, Watches

CONFIGURATION_KEY = "volcano-controller.conf"
"""Key of the ConfigMap that has the configuration."""

DEBOUNCE_SECONDS = 1.0
"""How long a pass waits for further changes."""

_COUNT = "node count"
"""Where a HyperNode may be set aside, in metrics and events."""

_ALL = ""
"""The key of the discovery; other keys are names of HyperNodes."""


class NodeLabels(ApiStruct, frozen=True):
    """Name and labels of a Node."""

    name: str = ""
    labels: dict[str, str] | None = None


class LabelledNode(ApiStruct, frozen=True):
    """A Node with only its labels: clusters have thousands of Nodes."""

    metadata: NodeLabels = NodeLabels()


class HyperNodeCaches:
    """Watches for HyperNodes. They are optional for readiness, because only HyperNodes need them.

    Attributes:
        configuration: The ConfigMap, if it exists.
        nodes: All Nodes, but only their labels.
        hyper_nodes: All HyperNodes, raw.
    """

    def __init__(self, watches: Watches, discovery: tuple[str, str]) -> None:
        """Create the caches."""
        self._namespace, self._name = discovery
        self.configuration: WatchCache[Raw] = watches.of(
            CONFIG_MAP,
            dict,
            namespace=self._namespace,
            field_selector=f"metadata.name={self._name}",
            optional=True,
        )
        self.nodes = watches.of(NODE, LabelledNode, optional=True)
        self.hyper_nodes: WatchCache[Raw] = watches.of(HYPER_NODE, dict, optional=True)

    @property
    def name(self) -> tuple[str, str]:
        """Name and namespace of the ConfigMap."""
        return self._name, self._namespace

    def config_map(self) -> Raw:
        """The ConfigMap; without data and uid when there is none."""
        named = {"name": self._name, "namespace": self._namespace, "uid": ""}
        return self.configuration.get(self._name, self._namespace) or {"metadata": named}


class HyperNodeController(Controller[str]):
    """The HyperNode controller, while this process is the leader."""

    def __init__(
        self,
        worker: ControllerProcess,
        caches: HyperNodeCaches,
    ) -> None:
        """Create a controller; it must `run`."""
        required = (caches.configuration, caches.nodes, caches.hyper_nodes)
        super().__init__(worker, "hypernodes", required, no_namespace)
        self._caches = caches
        self._discovery = OFF
        self._counter = NodeCounter()
        self._counts: dict[str, int] = {}
        self._recounts: RetryTimers[str] = RetryTimers(self._recount)

    async def run(self) -> None:
        """Work until cancelled; the discovery has its first pass also where there is nothing yet."""
        self.queue.add(_ALL)
        try:
            await super().run()
        finally:
            self._recounts.close()

    def sources(self) -> Iterable[Source]:
        """Objects on which the topology depends."""
        caches = self._caches
        return (
            (each, self._changed)
            for each in (caches.configuration, caches.nodes, caches.hyper_nodes)
        )

    def keys(self) -> Iterable[str]:
        """The key of the discovery, which also counts Nodes."""
        return (_ALL,)

    def about(self, key: str) -> Reference:
        """A HyperNode or, for the configuration's key, the ConfigMap."""
        if key == _ALL:
            return self._caches.configuration.reference(*self._caches.name)
        return self._caches.hyper_nodes.reference(key)

    def look(self, key: str) -> PlannedObject | None:
        """Read a HyperNode or, for the configuration's key, the ConfigMap."""
        if key == _ALL:
            return PlannedObject(CONFIG_MAP, self._caches.config_map())
        found = self._caches.hyper_nodes.get(key)
        return None if found is None else PlannedObject(HYPER_NODE, found)

    async def plan(self, key: str, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """The changes that discovery needs; for a HyperNode, its number of Nodes."""
        if key != _ALL:
            return self._plan_count(key, subject.obj)
        nodes = {
            each.metadata.name: each.metadata.labels or {} for each in self._caches.nodes.values()
        }
        await self._count(nodes)
        if not subject.uid:
            self._discovery = OFF
            return Plan()
        from pumice.controller.hypernodes.reading import read  # brings pydantic and YAML

        data = subject.obj.get("data") or {}
        self._discovery = read(data.get(CONFIGURATION_KEY), self._discovery)
        return plan_discovery(self._discovery, nodes, [*finds, *self._caches.hyper_nodes.values()])

    async def _count(self, nodes: dict[str, dict[str, str]]) -> None:
        known: dict[str, HyperNode] = {}
        failed: dict[str, Exception] = {}
        for _, name in self._caches.hyper_nodes.identities():
            try:
                known[name] = msgspec.convert(self._caches.hyper_nodes.get(name), HyperNode)
            except Exception as error:
                failed[name] = error
        for gone in self._counts.keys() - known.keys():
            self.queue.add(gone)  # so that it is dropped
        # Hundreds of patterns take seconds at first, in which the Lease must be renewed.
        self._counts = await asyncio.to_thread(self._counter.count, known, nodes)
        self._report(self._counts, failed | self._counter.errors)
        for name, count in self._counts.items():
            if known[name].status.node_count != count:
                self.queue.add(name)

    def _report(self, counted: Iterable[str], failed: Mapping[str, Exception]) -> None:
        """Set HyperNodes aside whose Nodes cannot be counted."""
        faults, reference = self._worker.faults, self._caches.hyper_nodes.reference
        for name, error in failed.items():
            faults.failed(reference(name), _COUNT, error, self._recounts.fail(name))
        for name in counted:
            if name in self._recounts:
                self._recounts.drop(name)
                faults.passed(reference(name), _COUNT)

    def _recount(self, name: str) -> None:
        """Count again after the pause of a HyperNode, if it is still there."""
        if self._caches.hyper_nodes.get(name) is None:
            self._recounts.drop(name)
        else:
            self.queue.add(_ALL)

    def _plan_count(self, name: str, stored: Raw) -> Plan:
        status = stored.get("status") or {}
        count = self._counts.get(name)
        if count is None or status.get("nodeCount", 0) == count:
            return Plan()
        return Plan.of([PatchStatus(status | {"nodeCount": count})])

    def _changed(self, old: Any, new: Any) -> None:
        if old is not None and new is not None and _matters(old) == _matters(new):
            return
        self.queue.add_after(_ALL, DEBOUNCE_SECONDS)


def _matters(obj: LabelledNode | Raw) -> object:
    """The fields on which the topology depends; heartbeats of Nodes and own status writes are not among them."""
    if isinstance(obj, LabelledNode):
        return obj.metadata.labels
    meta = obj["metadata"]
    return meta.get("uid"), meta.get("labels"), obj.get("spec"), obj.get("data")
