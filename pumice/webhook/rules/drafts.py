"""Objects before defaulting: the few fields that defaulting reads.

None means that a field is missing or null, which the full structs do not show. And nine tenths of a Job are pod
templates, of which defaulting reads two fields; decoding only these takes a third of the time.
"""

from collections.abc import Container
from typing import Any

import msgspec

from pumice.api.jobs import DependsOn, PartitionPolicy
from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.podgroups import PodGroupSpec
from pumice.api.queues import QueueSpec


class _Owned(msgspec.Struct, frozen=True):
    spec: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="f:spec")


_owned = msgspec.json.Decoder(_Owned)


class ManagedFields(ApiStruct, frozen=True):
    """Fields that a manager owns, and whether by server-side apply."""

    operation: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw(b"null")

    def owned(self) -> Container[str] | None:
        """Fields of the spec that the manager owns, such as `f:queue`; None if they cannot be read."""
        try:
            return _owned.decode(self.fields_v1).spec or ()
        except (ValueError, RecursionError):
            return None


class DraftMeta(ApiStruct, frozen=True):
    """Metadata of a Job to be defaulted."""

    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None
    managed_fields: list[ManagedFields] | None = None


class DraftPodSpec(ApiStruct, frozen=True):
    """The network of a pod, with values of any type: templates are checked later, with better messages."""

    host_network: Any = None
    dns_policy: Any = None


class DraftTemplate(ApiStruct, frozen=True):
    """A pod template to be defaulted."""

    spec: DraftPodSpec | None = None


class DraftTask(ApiStruct, frozen=True):
    """A task to be defaulted."""

    name: str | None = None
    replicas: int | None = None
    min_available: int | None = None
    max_retry: int | None = None
    partition_policy: PartitionPolicy | None = None
    depends_on: DependsOn | None = None
    template: DraftTemplate | None = None


class DraftSpec(ApiStruct, frozen=True):
    """A Job's spec to be defaulted."""

    queue: str | None = None
    scheduler_name: str | None = None
    max_retry: int | None = None
    min_available: int | None = None
    plugins: dict[str, list[str] | None] | None = None
    tasks: list[DraftTask] | None = None


class DraftJob(ApiStruct, frozen=True):
    """A Job to be defaulted."""

    metadata: DraftMeta | None = None
    spec: DraftSpec | None = None


class DraftQueue(ApiStruct, frozen=True):
    """A Queue to be defaulted."""

    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec | None = None


class DraftGroupMeta(ObjectMeta, frozen=True):
    """Metadata of a PodGroup to be defaulted."""

    managed_fields: list[ManagedFields] | None = None


class DraftPodGroup(ApiStruct, frozen=True):
    """A PodGroup to be defaulted."""

    metadata: DraftGroupMeta = DraftGroupMeta()
    spec: PodGroupSpec | None = None


class DraftPodMeta(ApiStruct, frozen=True):
    """Metadata of a pod to be defaulted."""

    namespace: str = ""
    annotations: dict[str, str] | None = None


class DraftPodPlace(ApiStruct, frozen=True):
    """Scheduling fields of a pod to be defaulted."""

    scheduler_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    tolerations: list[dict[str, Any]] | None = None
    scheduling_gates: list[dict[str, Any]] | None = None


class DraftPod(ApiStruct, frozen=True):
    """A pod to be defaulted."""

    metadata: DraftPodMeta = DraftPodMeta()
    spec: DraftPodPlace | None = None


def draft_of(job: dict[str, Any]) -> DraftJob:
    """A decoded Job (`msgspec.to_builtins`) in the form that defaulting reads.

    Templates are not decoded with a Job, so they may have any content. If one is not an object, defaulting reads none
    of them; the rules on templates report it.
    """
    try:
        return msgspec.convert(job, DraftJob)
    except msgspec.ValidationError:
        spec = job["spec"]
        tasks = [
            {name: value for name, value in task.items() if name != "template"}
            for task in spec["tasks"]
        ]
        return msgspec.convert({**job, "spec": {**spec, "tasks": tasks}}, DraftJob)
