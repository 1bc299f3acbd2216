"""What `pumice explain` tells of a PodGroup and of the pods of a gang."""

from collections.abc import Sequence
from typing import Any

from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod, PodCondition
from pumice.api.quantities import QuantityError
from pumice.cli.live.failed_pods import why_of
from pumice.cli.live.observed import ReadableCluster
from pumice.scheduler import ClusterState
from pumice.scheduler.model.sub_groups import SubGroups
from pumice.scheduler.topology.whereabouts import whereabouts

Explanation = dict[str, Any]


def of_group(
    group: PodGroup | None, pods: Sequence[Pod], seen: ReadableCluster
) -> Explanation | None:
    """The PodGroup of a Job or pod: its conditions, where it runs in the network, and its sub-groups."""
    if group is None:
        return None
    state = _settled(group, pods, seen)
    job = state.jobs[group.metadata.key] if state else None
    network = whereabouts(job, state.network, state.nodes.row_of) if state and job else None
    return {
        "name": group.metadata.name,
        "queue": group.spec.queue,
        "phase": group.status.phase,
        "minMember": group.spec.min_member,
        "conditions": group.status.conditions or [],
        "network": network.details if network is not None else None,
        "subGroupPolicies": _sub_groups(job.sub_groups) if job and job.sub_groups else [],
    }


def _settled(group: PodGroup, pods: Sequence[Pod], seen: ReadableCluster) -> ClusterState | None:
    """The gang with its pods, and the nodes where there are HyperNodes; None if an object cannot be read."""
    state = ClusterState(tuple({pod.spec.scheduler_name for pod in pods}))
    for hyper_node in seen.objects.hyper_nodes:
        state.set_hyper_node(hyper_node)
    try:
        state.set_pod_group(group)
        for node in seen.objects.nodes if state.network.has_hyper_nodes else ():
            state.set_node(node)
        for pod in pods:
            state.set_pod(pod)
    except QuantityError:
        return None  # `notComputed` says it
    state.settle()
    return state


def _sub_groups(groups: SubGroups) -> list[Explanation]:
    """The sub-groups of each policy, in the order in which they are served."""
    found: list[Explanation] = [
        {
            "name": each.title,
            "minSubGroups": each.minimum,
            "ready": each.ready,
            "subGroups": [],
        }
        for each in groups.policies
    ]
    for each in filter(None, groups.turns()):
        state_of = "Ready" if each.is_ready else "Waiting" if each.is_valid else "Incomplete"
        found[each.of.place]["subGroups"].append(
            {
                "labels": dict(zip(each.of.keys, each.key, strict=True)),
                "size": each.size,
                "pods": len(each.tasks),
                "ready": each.ready,
                "state": state_of,
            }
        )
    return found


def of_pods(pods: Sequence[Pod], group: PodGroup | None) -> list[Explanation]:
    """Pods with the reasons of those that wait; a pod beyond the minimum of a gang that runs does not wait for its gang."""
    told = [_pod(pod) for pod in pods]
    if group is None or group.status.phase != "Running":
        return told
    waiting = [each for each in told if not each["node"] and each["phase"] in ("", "Pending")]
    why = next((each["message"] for each in waiting if each["reason"] == "Unschedulable"), "")
    for each in waiting:
        if not each["message"]:
            text = f"its gang runs with its minimum of {group.spec.min_member} without this pod"
            each["message"] = f"{text}; another one waits: {why}" if why else text
    return told


def _pod(pod: Pod) -> Explanation:
    conditions = pod.status.conditions or ()
    said = next(
        (each for each in conditions if each.type == "PodScheduled" and each.status == "False"),
        PodCondition(),
    )
    return {
        "name": pod.metadata.name,
        "phase": pod.status.phase,
        "node": pod.spec.node_name,
        "nominatedNode": pod.status.nominated_node_name,
        "reason": said.reason,
        "message": said.message or why_of(pod),
    }
