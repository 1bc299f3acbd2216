"""What rules take for granted, as they ask for it.

Settings know every rule by its code, and resource groups are judged by rules, so rules must not know
either: here they name what they need. They get `pumice.webhook.settings.AdmissionSettings`, which describes
each setting for users, and `pumice.webhook.groups.model.ResourceGroups`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pumice.webhook.rules.rule import Level

__all__ = ["Group", "Groups", "Terms"]


class Terms(Protocol):
    """Terms of admission."""

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """Schedulers whose pods are judged; the first is for Jobs that name none."""

    @property
    def max_queue_depth(self) -> int:
        """How deep queues may be nested below `root`."""

    @property
    def enable_root_queue_protection(self) -> bool:
        """Whether the amounts of queue `root` stay as they are."""

    @property
    def enable_queue_allocated_pods_check(self) -> bool:
        """Whether a queue with running pods stays."""

    @property
    def strict_upstream(self) -> bool:
        """Whether to admit what Volcano admits."""

    @property
    def pod_level_resources(self) -> bool:
        """Whether pods have resources as a whole."""

    @property
    def scheduling_gates_queue_admission(self) -> bool:
        """Whether pods that ask for it are held with a scheduling gate."""

    @property
    def mpi_depends_on(self) -> bool:
        """Whether the master of an MPI Job waits for its workers."""

    @property
    def cluster_levels(self) -> Mapping[str, Level]:
        """How strict rules are that do not have their own level, by code."""

    def levels(self, namespace: str) -> Mapping[str, Level]:
        """The same for the objects of a namespace; empty for objects that are in none."""


class Group(Protocol):
    """What a resource group gives to its pods."""

    @property
    def name(self) -> str:
        """For messages; may be empty."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of nodes that its pods select."""

    @property
    def affinity(self) -> dict[str, Any] | None:
        """Affinity of its pods that have none."""

    @property
    def tolerations(self) -> Sequence[dict[str, Any]]:
        """Taints that its pods tolerate."""

    @property
    def scheduler_name(self) -> str:
        """Scheduler of its pods; their own when empty."""


class Groups(Protocol):
    """The resource groups of a cluster."""

    def find(self, namespace: str, annotations: Mapping[str, str]) -> Group | None:
        """The group of a pod, or None when it belongs to none."""
