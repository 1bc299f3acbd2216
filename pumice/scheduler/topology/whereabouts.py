"""In which domain the pods of a gang, and of each of its sub-groups, hold their places."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.sub_groups import SubGroup
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, TaskInfo
from pumice.scheduler.topology.tree import Domain, NetworkTree


class Whereabouts(NamedTuple):
    """Domains of a gang.

    Attributes:
        whole: The narrowest domain of all its pods.
        sub_groups: The same for each sub-group that has a pod with a place, in their order.
    """

    whole: Domain
    sub_groups: list[tuple[SubGroup, Domain]]

    @property
    def message(self) -> str:
        """A sentence about the gang; empty if its pods are in no HyperNode together."""
        name, tier = self.whole.name, self.whole.tier
        return f"its pods are in HyperNode {name} (tier {tier})" if name else ""

    @property
    def details(self) -> dict[str, Any]:
        """The same as data, ready for JSON."""
        return _of_domain(self.whole) | {
            "subGroups": [
                {
                    "policy": group.of.title,
                    "labels": dict(zip(group.of.keys, group.key, strict=True)),
                }
                | _of_domain(domain)
                for group, domain in self.sub_groups
            ]
        }


def _of_domain(domain: Domain) -> dict[str, Any]:
    """Name and tier; without a name for the whole cluster."""
    return {"hyperNode": domain.name or None, "tier": domain.tier}


def whereabouts(
    job: JobInfo, tree: NetworkTree, row_of: Callable[[str], int]
) -> Whereabouts | None:
    """Where a gang is of which its PodGroup says something about the network; None for others, and without places or HyperNodes."""
    spec = job.group.spec if job.group is not None else None
    if spec is None or not tree.has_hyper_nodes:
        return None
    if spec.network_topology is None and not any(
        each.network_topology for each in spec.sub_group_policy or ()
    ):
        return None

    def narrowest(tasks: Iterable[TaskInfo]) -> Domain | None:
        rows = [row_of(task.node) for task in tasks if task.status in ALLOCATED_LIKE]
        known = [row for row in rows if row >= 0]
        return tree.narrowest(known) if known else None

    whole = narrowest(job.tasks.values())
    if whole is None:
        return None
    groups = sorted(job.sub_groups or (), key=lambda group: group.order)
    return Whereabouts(
        whole, [(each, found) for each in groups if (found := narrowest(each.tasks.values()))]
    )
