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

_ROOT_FIELDS: dict[str, Any] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


@dataclass(frozen=True, slots=True)
class CrdColumn:
    """A column of `kubectl get`; priority above 0 shows only with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> dict[str, Any]:
        """The column in the form that a CRD has."""
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return column | ({"priority": self.priority} if self.priority else {})


_AGE = CrdColumn("Age", ".metadata.creationTimestamp", "date")

_MODELS: dict[Kind, tuple[type[msgspec.Struct], tuple[CrdColumn, ...]]] = {
    kinds.JOB: (
        Job,
        (
            CrdColumn("STATUS", ".status.state.phase"),
            CrdColumn("minAvailable", ".status.minAvailable", "integer"),
            CrdColumn("RUNNINGS", ".status.running", "integer"),
            _AGE,
            CrdColumn("QUEUE", ".spec.queue", priority=1),
            CrdColumn("REASON", ".status.state.message", priority=1),
        ),
    ),
    kinds.COMMAND: (
        Command,
        (CrdColumn("ACTION", ".action"), CrdColumn("TARGET", ".target.name"), _AGE),
    ),
    kinds.POD_GROUP: (
        PodGroup,
        (
            CrdColumn("STATUS", ".status.phase"),
            CrdColumn("minMember", ".spec.minMember", "integer"),
            CrdColumn("RUNNINGS", ".status.running", "integer"),
            _AGE,
            CrdColumn("QUEUE", ".spec.queue", priority=1),
            CrdColumn("REASON", ".status.conditions[0].message", priority=1),
        ),
    ),
    kinds.QUEUE: (
        Queue,
        (
            CrdColumn("PARENT", ".spec.parent"),
            CrdColumn("STATE", ".status.state"),
            CrdColumn("PENDING", ".status.pending", "integer"),
            CrdColumn("INQUEUE", ".status.inqueue", "integer"),
            CrdColumn("RUNNING", ".status.running", "integer"),
            _AGE,
            CrdColumn("WEIGHT", ".spec.weight", "integer", 1),
            CrdColumn("UNKNOWN", ".status.unknown", "integer", 1),
            CrdColumn("COMPLETED", ".status.completed", "integer", 1),
            CrdColumn("PODS", ".status.allocated.pods", priority=1),
            CrdColumn("REASON", ".status.message", priority=1),
        ),
    ),
    kinds.CRON_JOB: (
        CronJob,
        (
            CrdColumn("SCHEDULE", ".spec.schedule"),
            CrdColumn("TIMEZONE", ".spec.timeZone"),
            CrdColumn("SUSPEND", ".spec.suspend", "boolean"),
            CrdColumn("LAST-SCHEDULE", ".status.lastScheduleTime", "date"),
            _AGE,
            CrdColumn("CONCURRENCY", ".spec.concurrencyPolicy", priority=1),
        ),
    ),
    kinds.JOB_FLOW: (JobFlow, (CrdColumn("STATUS", ".status.state.phase"), _AGE)),
    kinds.JOB_TEMPLATE: (
        JobTemplate,
        (
            CrdColumn("minAvailable", ".spec.minAvailable", "integer"),
            CrdColumn("QUEUE", ".spec.queue"),
            _AGE,
        ),
    ),
    kinds.HYPER_NODE: (
        HyperNode,
        (
            CrdColumn("TIER", ".spec.tier"),
            CrdColumn("TIERNAME", ".spec.tierName"),
            CrdColumn("NODECOUNT", ".status.nodeCount", "integer"),
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
