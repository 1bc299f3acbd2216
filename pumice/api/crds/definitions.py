"""The CRDs: schema, names, scopes, subresources and printer columns.

Compatible with Volcano's, so that manifests, `kubectl get` habits and clients work unchanged.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from pumice.api import kinds
from pumice.api.commands import Command
from pumice.api.crds.openapi import struct_schema
from pumice.api.cronjobs import CronJob
from pumice.api.hypernodes import HyperNode
from pumice.api.jobflows import JobFlow, JobTemplate
from pumice.api.jobs import Job
from pumice.api.kinds import Kind
from pumice.api.podgroups import PodGroup
from pumice.api.queues import Queue

__all__ = ["all_crds", "crd", "schema_of"]

_ROOT_FIELDS: dict[str, Any] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; priority above 0 shows only with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> dict[str, Any]:
        """As the CRD spells it."""
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return column | ({"priority": self.priority} if self.priority else {})


_AGE = Column("Age", ".metadata.creationTimestamp", "date")

_MODELS: dict[Kind, tuple[type[msgspec.Struct], tuple[Column, ...]]] = {
    kinds.JOB: (
        Job,
        (
            Column("STATUS", ".status.state.phase"),
            Column("minAvailable", ".status.minAvailable", "integer"),
            Column("RUNNINGS", ".status.running", "integer"),
            _AGE,
            Column("QUEUE", ".spec.queue", priority=1),
            Column("REASON", ".status.state.message", priority=1),
        ),
    ),
    kinds.COMMAND: (
        Command,
        (Column("ACTION", ".action"), Column("TARGET", ".target.name"), _AGE),
    ),
    kinds.POD_GROUP: (
        PodGroup,
        (
            Column("STATUS", ".status.phase"),
            Column("minMember", ".spec.minMember", "integer"),
            Column("RUNNINGS", ".status.running", "integer"),
            _AGE,
            Column("QUEUE", ".spec.queue", priority=1),
            Column("REASON", ".status.conditions[0].message", priority=1),
        ),
    ),
    kinds.QUEUE: (
        Queue,
        (
            Column("PARENT", ".spec.parent"),
            Column("STATE", ".status.state"),
            Column("PENDING", ".status.pending", "integer"),
            Column("INQUEUE", ".status.inqueue", "integer"),
            Column("RUNNING", ".status.running", "integer"),
            _AGE,
            Column("WEIGHT", ".spec.weight", "integer", 1),
            Column("UNKNOWN", ".status.unknown", "integer", 1),
            Column("COMPLETED", ".status.completed", "integer", 1),
            Column("PODS", ".status.allocated.pods", priority=1),
            Column("REASON", ".status.message", priority=1),
        ),
    ),
    kinds.CRON_JOB: (
        CronJob,
        (
            Column("SCHEDULE", ".spec.schedule"),
            Column("TIMEZONE", ".spec.timeZone"),
            Column("SUSPEND", ".spec.suspend", "boolean"),
            Column("LAST-SCHEDULE", ".status.lastScheduleTime", "date"),
            _AGE,
            Column("CONCURRENCY", ".spec.concurrencyPolicy", priority=1),
        ),
    ),
    kinds.JOB_FLOW: (JobFlow, (Column("STATUS", ".status.state.phase"), _AGE)),
    kinds.JOB_TEMPLATE: (
        JobTemplate,
        (
            Column("minAvailable", ".spec.minAvailable", "integer"),
            Column("QUEUE", ".spec.queue"),
            _AGE,
        ),
    ),
    kinds.HYPER_NODE: (
        HyperNode,
        (
            Column("TIER", ".spec.tier"),
            Column("TIERNAME", ".spec.tierName"),
            Column("NODECOUNT", ".status.nodeCount", "integer"),
            _AGE,
        ),
    ),
}


@cache
def schema_of(kind: Kind) -> dict[str, Any]:
    """Structural schema of a kind. It is shared: copy it before changing it."""
    model, _ = _MODELS[kind]
    schema = struct_schema(model, omit=("api_version", "kind", "metadata"))
    schema["properties"] = _ROOT_FIELDS | schema["properties"]
    return schema


def crd(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    _, columns = _MODELS[kind]
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column.manifest() for column in columns],
        "schema": {"openAPIV3Schema": schema_of(kind)},
    }
    if kind.status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": kinds.CRD.api_version,
        "kind": kinds.CRD.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def all_crds() -> list[dict[str, Any]]:
    """The CRDs that Pumice ships, in the order of `kinds.VOLCANO`."""
    return [crd(kind) for kind in kinds.VOLCANO]
