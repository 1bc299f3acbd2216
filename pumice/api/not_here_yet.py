"""What Volcano has and Pumice admits without acting on it: one table.

Admission warns by it (rule `NOT-HERE-YET`), `pumice explain` and `pumice migrate check` say it, the scheduler takes from it
the names of plugins that a configuration may have, and the page on compatibility is generated from it.
What is built is removed here, and so disappears everywhere.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.meta import Raw
from pumice.api.pods import Pod

Harm = Literal["would not run", "would run elsewhere or evict", "other words"]
"""What becomes of workload; `other words` is a difference in what is reported and accepted, not in what runs."""

HARMS: tuple[Harm, ...] = ("would not run", "would run elsewhere or evict", "other words")
"""Every harm, the greatest first."""

Where = Literal["field", "kind", "plugin"]
"""What a row is about: fields of manifests, kinds, or plugins of the scheduler's configuration."""

LONGEST_ABOUT_PODS = 4 * 1024
"""Bytes of pod affinity, of topology spread, and of selectors of claims and budgets, that are read. Each rule is compared with all
pods, nodes or volumes: those of one object must not hold up the others for longer than a Lease lasts."""

LONGEST_ABOUT_NODES = 32 * 1024
"""Bytes that are read of each rule about nodes, enough for the names of a thousand nodes. Each expression is compared with all nodes."""


class NotHereYet(msgspec.Struct, frozen=True):
    """A row of the table.

    Attributes:
        where: What it is about.
        name: The field, kind or plugin; for fields, words that describe it.
        outcome: What Pumice does with it, or does not.
        remedy: What to do instead.
        harm: What becomes of workload that relies on it.
    """

    where: Where
    name: str
    outcome: str
    remedy: str
    harm: Harm


_NOT_RUN, _ELSEWHERE, _ = HARMS

CLAIMS = NotHereYet(
    "field",
    "resourceClaims",
    "devices of claims are not allocated, and the pod is not placed",
    "ask for the device by a resource of its device plugin, such as nvidia.com/gpu",
    _NOT_RUN,
)
SHARES = NotHereYet(
    "field",
    "shares of a GPU (volcano.sh/vgpu-…, volcano.sh/gpu-…)",
    "no plugin chooses a device, so the container does not start, or no node has the resource",
    "ask for whole devices, or for slices that a device plugin serves by itself, such as nvidia.com/mig-1g.10gb",
    _NOT_RUN,
)
LONG_RULES = NotHereYet(
    "field",
    f"more than {LONGEST_ABOUT_PODS // 1024} KiB of rules about other pods, or {LONGEST_ABOUT_NODES // 1024} KiB about nodes",
    "the pod is not placed",
    "select pods and nodes by a label that they share, instead of by long lists",
    _NOT_RUN,
)
NUMA = NotHereYet(
    "field",
    "topologyPolicy (volcano.sh/numa-topology-policy)",
    "nodes are chosen without regard to NUMA, so kubelet may refuse the pod there",
    "set the policy of kubelet's Topology Manager on some nodes, and select these by a label",
    _ELSEWHERE,
)

TABLE: tuple[NotHereYet, ...] = (
    CLAIMS,
    SHARES,
    LONG_RULES,
    NUMA,
    NotHereYet(
        "kind",
        "Numatopology",
        "it is not read",
        NUMA.remedy,
        _ELSEWHERE,
    ),
    NotHereYet(
        "plugin",
        "deviceshare",
        "shares of devices are not allocated",
        SHARES.remedy,
        _ELSEWHERE,
    ),
    NotHereYet(
        "plugin",
        "extender",
        "the extender is not asked",
        "write a plugin in Python, which answers in the scheduler itself",
        _ELSEWHERE,
    ),
    NotHereYet(
        "plugin",
        "numa-aware",
        "nodes are not chosen by NUMA",
        NUMA.remedy,
        _ELSEWHERE,
    ),
    NotHereYet(
        "plugin",
        "rescheduling",
        "pods are not evicted to even out load",
        "use action shuffle with a plugin of your own, or the descheduler of Kubernetes",
        _ELSEWHERE,
    ),
    NotHereYet(
        "plugin",
        "usage",
        "nodes are ranked by what pods request, not by measured load",
        "use the weights of plugin nodeorder",
        _ELSEWHERE,
    ),
)
"""Every row: fields first, the greatest harm first."""

_BY_NAME = {(each.where, each.name): each for each in TABLE}


def named(where: Where, name: str) -> NotHereYet | None:
    """The row about a kind or a plugin; None if Pumice has it."""
    return _BY_NAME.get((where, name))


class Use(NamedTuple):
    """A field that uses a row of the table."""

    row: NotHereYet
    path: str

    def __str__(self) -> str:
        """What happens, and what to do: `is not acted on yet: …; …`."""
        return f"is not acted on yet: {self.row.outcome}; {self.row.remedy}"


def sentences(uses: Iterable[Use]) -> list[str]:
    """One sentence a row, with the first field that uses it and the number of the others."""
    paths: dict[NotHereYet, list[str]] = {}
    for use in uses:
        paths.setdefault(use.row, []).append(use.path)
    return [
        f"{first}{f' (and {len(others)} more)' if others else ''} {Use(row, first)}"
        for row, (first, *others) in paths.items()
    ]


def uses_in_job(job: Job) -> list[Use]:
    """What a Job uses; templates may be of any form."""
    found: list[Use] = []
    for index, task in enumerate(job.tasks):
        path = f"spec.tasks[{index}]"
        if task.topology_policy not in _NO_POLICY:
            found.append(Use(NUMA, f"{path}.topologyPolicy"))
        if task.template:
            _of_template(found, task.template, f"{path}.template.")
    return found


def uses_in_pod(pod: Pod) -> list[Use]:
    """What a pod uses."""
    found: list[Use] = []
    _of_template(found, msgspec.to_builtins(pod), "")
    return found


_NO_POLICY = ("", "none")


def _of_template(found: list[Use], template: Raw, path: str) -> None:
    """The path ends in a dot, if it is not empty. Most templates use nothing, so paths of fields are made when one does."""
    metadata, spec = template.get("metadata"), template.get("spec")
    if isinstance(metadata, dict):
        entries = metadata.get("annotations")
        if isinstance(entries, dict) and entries.get(keys.NUMA_POLICY, "") not in _NO_POLICY:
            found.append(Use(NUMA, f"{path}metadata.annotations[{keys.NUMA_POLICY}]"))
    if isinstance(spec, dict):
        if not _RULES.isdisjoint(spec):
            _of_rules(found, spec, f"{path}spec")
        for field in _CONTAINERS:
            containers = spec.get(field)
            if isinstance(containers, list):
                for index, container in enumerate(containers):
                    resources = container.get("resources") if isinstance(container, dict) else None
                    if isinstance(resources, dict) and (name := _share(resources)):
                        where = f"{path}spec.{field}[{index}].resources.{name}"
                        found.append(Use(SHARES, where))


_CONTAINERS = ("containers", "initContainers")
_ABOUT_NODES = ("nodeSelector", "tolerations")
_RULES = frozenset({"affinity", "resourceClaims", "topologySpreadConstraints", *_ABOUT_NODES})


def _of_rules(found: list[Use], spec: Raw, path: str) -> None:
    if spec.get("resourceClaims"):
        found.append(Use(CLAIMS, f"{path}.resourceClaims"))
    affinity = spec.get("affinity")
    if isinstance(affinity, dict):
        about_pods = affinity.get("podAffinity"), affinity.get("podAntiAffinity")
        if any(about_pods) and _size(about_pods) > LONGEST_ABOUT_PODS:
            found.append(Use(LONG_RULES, f"{path}.affinity"))
        if _size(affinity.get("nodeAffinity")) > LONGEST_ABOUT_NODES:
            found.append(Use(LONG_RULES, f"{path}.affinity.nodeAffinity"))
    spreads = spec.get("topologySpreadConstraints")
    if spreads and _size(spreads) > LONGEST_ABOUT_PODS:
        found.append(Use(LONG_RULES, f"{path}.topologySpreadConstraints"))
    found.extend(
        Use(LONG_RULES, f"{path}.{field}")
        for field in _ABOUT_NODES
        if field in spec and _size(spec[field]) > LONGEST_ABOUT_NODES
    )


_encode = msgspec.json.encode


def _size(rules: object) -> int:
    """Bytes of rules as JSON; 0 if there are none."""
    return len(_encode(rules)) if rules else 0


def _share(resources: Raw) -> str:
    """The first share of a GPU that a container asks for, as `limits.NAME`; empty without one."""
    for which in ("limits", "requests"):
        amounts = resources.get(which)
        if isinstance(amounts, dict):
            for name in amounts:
                if name.startswith(_OF_SHARES):
                    return f"{which}.{name}"
    return ""


_OF_SHARES = ("volcano.sh/vgpu-", "volcano.sh/gpu-")
