"""Pod shapes: the properties of pods that decide which nodes fit them.

The pods of a gang mostly differ in their names only. Requests, selector, affinity, topology spread, tolerations, host
ports, claims and whether they may use revocable nodes are interned as one shape, and masks and scores are computed once
for each shape and not for each pod.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from pumice.api import keys
from pumice.api.meta import ObjectMeta, parse_bool
from pumice.api.not_here_yet import LONGEST_ABOUT_NODES
from pumice.api.pods import Affinity, Container, NodeAffinity, Pod, PodSpec, PodStatus, Toleration
from pumice.api.quantities import parse_milli
from pumice.api.requests import pod_requests
from pumice.scheduler.model.affinity_terms import PeerRules, peer_rules, too_long
from pumice.scheduler.model.axis import (
    CPU,
    MEMORY,
    PODS,
    SCORED_CPU,
    SCORED_MEMORY,
    Axis,
    Ints,
    in_units,
)
from pumice.scheduler.model.claims import claim_names
from pumice.scheduler.model.host_ports import HostPort, port_use

DEFAULT_SCORED_CPU = 100
"""Milli-CPU that a container without a request counts as when nodes are compared by their load."""
DEFAULT_SCORED_MEMORY = 200 * 1024 * 1024 * 1000
"""The same for memory: 200 MiB in milli-bytes. Both are kube-scheduler's defaults for pods without requests."""

NODE_SELECTOR, NODE_AFFINITY, TOLERATIONS = "nodeSelector", "affinity.nodeAffinity", "tolerations"
"""Fields with rules about nodes, as `hard_rules` names them."""


_MOST_KNOWN, _LONGEST_KNOWN = 32, 4 * 1024
"""How many specs are remembered, and bytes of the longest of these."""


class Need(NamedTuple):
    """One resource that a node must have room for."""

    column: int
    amount: int
    name: str


class PodShape:
    """One set of demands.

    Attributes:
        number: Identity, unique while the shape is in use.
        vector: What it takes from a node, in column order.
        amounts: The same as a list.
        needs: Resources that a node must have room for: CPU, memory, then the others by name.
        is_empty: Whether it asks for nothing but a slot.
        claims: Claims that it mounts, `namespace/name`.
        ports: Host ports that it takes.
        is_revocable: Whether it may use nodes of revocable zones.
        peers: What it says about other pods; None for nothing.
        hard_rules: Fields with which it rules out nodes in a way that is not supported, or that are too long to be read.
        rules: What it asks of nodes apart from its requests; equal for shapes that differ in these alone, or in `peers`.
        users: Pods that have it.
    """

    def __init__(
        self, number: int, key: "ShapeKey", spec: PodSpec, vector: Ints, names: Sequence[str]
    ) -> None:
        self.number = number
        self.key = key
        self.count(vector, names)
        self.hard_rules = hard = key.hard_rules
        self.node_selector = {} if NODE_SELECTOR in hard else dict(spec.node_selector or {})
        self.node_affinity: NodeAffinity | None = (
            None if NODE_AFFINITY in hard else (spec.affinity or Affinity()).node_affinity
        )
        self.tolerations: tuple[Toleration, ...] = (
            () if TOLERATIONS in hard else tuple(spec.tolerations or ())
        )
        self.ports = port_use(key.host_ports)
        self.claims = key.claims
        self.peers = key.peers
        self.is_revocable = key.is_revocable
        self.rules = (
            key.placement, self.ports.taken, key.claims, key.hard_rules, key.is_revocable
        )  # fmt: skip
        self.users = 0

    def count(self, vector: Ints, names: Sequence[str]) -> None:
        """Set what it takes from a node, in column order; no pod of it may be counted anywhere meanwhile."""
        self.vector = vector
        self.amounts: list[int] = vector.tolist()
        self.needs = tuple(
            Need(int(column), int(vector[column]), names[column])
            for column in sorted(
                np.flatnonzero(vector).tolist(),
                key=lambda column: (min(column, PODS), names[column]),
            )
            if column not in (SCORED_CPU, SCORED_MEMORY)
        )
        self.is_empty = all(need.column == PODS for need in self.needs)


class ShapeKey(msgspec.Struct, frozen=True):
    """What makes two shapes one.

    `scoring` is what the pods say about how nodes are scored for them: by which strategies, and with which weights.
    """

    requests: tuple[tuple[str, int], ...]
    scored: tuple[int, int]
    placement: bytes
    host_ports: tuple[HostPort, ...]
    claims: tuple[str, ...]
    hard_rules: tuple[str, ...]
    is_revocable: bool
    peers: PeerRules | None
    scoring: tuple[str, str]


class _Asked(NamedTuple):
    """What a pod's spec alone asks for; the fields are those of `ShapeKey`."""

    requests: tuple[tuple[str, int], ...]
    scored: tuple[int, int]
    placement: bytes
    host_ports: tuple[HostPort, ...]
    hard_rules: tuple[str, ...]

    @classmethod
    def of(cls, spec: PodSpec, status: PodStatus | None) -> "_Asked":
        about_nodes = {
            NODE_SELECTOR: spec.node_selector,
            NODE_AFFINITY: spec.affinity.node_affinity if spec.affinity else None,
            TOLERATIONS: spec.tolerations,
        }
        placement = _ENCODER.encode(tuple(about_nodes.values()))
        long = _too_long(about_nodes) if len(placement) > LONGEST_ABOUT_NODES else ()
        return cls(
            tuple(sorted(pod_requests(spec, status).items())),
            _scored(spec),
            placement,
            tuple(sorted(set(_host_ports(spec)))),
            (*_hard_rules(spec), *long),
        )


class ShapeTable:
    """All shapes in use."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._shapes: dict[ShapeKey, PodShape] = {}
        self._unknown: dict[ShapeKey, int] = {}
        self._next = 0
        self._last: tuple[PodSpec, _Asked] | None = None
        self._known: dict[bytes, _Asked] = {}
        self._width = len(axis)

    def __len__(self) -> int:
        return len(self._shapes)

    def intern(self, pod: Pod) -> PodShape:
        """The shape of a pod.

        Raises:
            QuantityError: A request cannot be read.
        """
        spec, meta = pod.spec, pod.metadata
        asked = self._asked(spec, pod.status)
        claims = claim_names(meta.name, spec.volumes) if spec.volumes else ()
        key = ShapeKey(
            asked.requests,
            asked.scored,
            asked.placement,
            asked.host_ports,
            tuple([f"{meta.namespace}/{name}" for name, _ in claims]) if claims else (),
            asked.hard_rules,
            _is_revocable(meta),
            peer_rules(pod),
            _scoring(meta),
        )
        shape = self._shapes.get(key)
        if shape is None:
            vector = self._vector(key)
            shape = self._shapes[key] = PodShape(self._next, key, spec, vector, self._axis.names)
            if unknown := self._axis.unknown(name for name, _ in asked.requests):
                self._unknown[key] = unknown
            self._next += 1
        return shape

    def _asked(self, spec: PodSpec, status: PodStatus) -> "_Asked":
        """What a spec asks for.

        Pods of a gang come one after the other, with specs that differ in their nodes at most; pods of gangs that are alike come between others.
        """
        if status.container_statuses or status.init_container_statuses or status.resources:
            return _Asked.of(spec, status)
        bare = msgspec.structs.replace(spec, node_name="") if spec.node_name else spec
        if self._last is None or self._last[0] != bare:
            self._last = bare, self._read(bare)
        return self._last[1]

    def _read(self, spec: PodSpec) -> "_Asked":
        try:
            text = _ENCODER.encode(spec)
        except (UnicodeError, RecursionError):  # of a file that no API server has seen
            return _Asked.of(spec, None)
        asked = self._known.get(text)
        if asked is None:
            asked = _Asked.of(spec, None)
            if len(self._known) == _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            if len(text) <= _LONGEST_KNOWN:
                self._known[text] = asked
        return asked

    def _vector(self, key: ShapeKey) -> Ints:
        vector = self._axis.vector(dict(key.requests))
        for column, least in zip((SCORED_CPU, SCORED_MEMORY), key.scored, strict=True):
            vector[column] = in_units(column, least)
        vector[SCORED_CPU] = max(vector[CPU], vector[SCORED_CPU])
        vector[SCORED_MEMORY] = max(vector[MEMORY], vector[SCORED_MEMORY])
        return vector

    def outdated(self) -> list[PodShape]:
        """Shapes that ask for a resource which had no column of its own, and has one now."""
        return [
            self._shapes[key]
            for key, unknown in self._unknown.items()
            if self._axis.unknown(name for name, _ in key.requests) < unknown
        ]

    def recount(self, shape: PodShape) -> None:
        """Count such a shape in the columns that there are; see `PodShape.count`."""
        shape.count(self._vector(shape.key), self._axis.names)
        self._unknown[shape.key] = self._axis.unknown(name for name, _ in shape.key.requests)
        if not self._unknown[shape.key]:
            del self._unknown[shape.key]

    def use(self, shape: PodShape) -> None:
        """Count one more pod of a shape."""
        shape.users += 1

    def release(self, shape: PodShape) -> None:
        """Count one pod less; a shape without pods is forgotten."""
        shape.users -= 1
        if shape.users == 0:
            self._shapes.pop(shape.key, None)
            self._unknown.pop(shape.key, None)

    def widen(self) -> None:
        """Give the vectors a zero for every column that was opened since."""
        width = len(self._axis)
        if width == self._width:
            return
        self._width = width
        for shape in self._shapes.values():
            missing = width - len(shape.vector)
            if missing:
                shape.vector = np.pad(shape.vector, (0, missing))
                shape.amounts = shape.vector.tolist()


_ENCODER = msgspec.json.Encoder(order="deterministic")


def _scored(spec: PodSpec) -> tuple[int, int]:
    cpu = memory = 0
    for container in spec.containers or ():
        cpu += _request(container, "cpu", DEFAULT_SCORED_CPU)
        memory += _request(container, "memory", DEFAULT_SCORED_MEMORY)
    return cpu, memory


def _request(container: Container, name: str, default: int) -> int:
    resources = container.resources
    if resources is None:
        return default
    found = (resources.requests or {}).get(name, (resources.limits or {}).get(name))
    return default if found is None else parse_milli(found)


def _host_ports(spec: PodSpec) -> Iterator[HostPort]:
    containers = spec.containers or []
    if spec.init_containers:
        containers = [each for each in spec.init_containers if each.restart_policy == "Always"]
        containers += spec.containers or ()
    for container in containers:
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                yield (port.protocol or "TCP", port.host_ip or "0.0.0.0", number)


def _hard_rules(spec: PodSpec) -> Iterator[str]:
    if spec.resource_claims:
        yield "resourceClaims"
    yield from too_long(spec)


def _too_long(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Fields with more rules about nodes than are read."""
    return tuple(
        field
        for field, rules in fields.items()
        if len(_ENCODER.encode(rules)) > LONGEST_ABOUT_NODES
    )


_NO_SCORING = ("", "")
_LONGEST_SCORING = 4 * 1024
"""Characters of such an annotation that are read."""


def _scoring(meta: ObjectMeta) -> tuple[str, str]:
    said = meta.annotations
    if not said or (keys.SCORING_TYPE not in said and keys.SCORING_WEIGHTS.isdisjoint(said)):
        return _NO_SCORING
    weights = next((said[key] for key in sorted(keys.SCORING_WEIGHTS) if key in said), "")
    texts = (said.get(keys.SCORING_TYPE, ""), weights)
    return texts if max(map(len, texts)) <= _LONGEST_SCORING else ("too long", "")


def _is_revocable(meta: ObjectMeta) -> bool:
    """Whether the pod may use nodes of revocable zones: if it says so, or else if its annotation says that it may be evicted."""
    zone = (meta.annotations or {}).get(keys.REVOCABLE_ZONE)
    if zone is not None:
        return zone == "*"
    return bool(parse_bool(meta.annotation(keys.PREEMPTABLE)))
