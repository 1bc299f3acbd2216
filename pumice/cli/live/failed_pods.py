"""What `pumice explain` says of pods that failed: causes, attempts, the policy that acted, and the last lines of logs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pumice.api.failures import attempts, cleaned, failure_of, grouped, meaning, trouble_of
from pumice.api.jobs import Job
from pumice.api.messages import shortened
from pumice.api.pods import Pod
from pumice.cli.live.log_lines import shown

if TYPE_CHECKING:
    from pumice.cluster.client import Client

_PODS = 5
"""Failures for which lines are shown, those of one pod each."""

_BYTES = 65_536
"""Bytes that are read of one log."""

_LINE = 2048
_RESTARTS = "pumice.dev/retries"

Data = dict[str, Any]


def failures(pods: Iterable[Pod]) -> list[Data]:
    """Failed pods by task and cause."""
    found = []
    for group in grouped(pods):
        first = group.first
        found.append(
            {
                "task": first.task,
                "pods": list(group.pods),
                "container": first.container,
                "exitCode": first.exit_code,
                "meaning": ""
                if first.exit_code is None
                else meaning(first.exit_code, first.reason),
                "reason": first.reason or first.pod_reason,
                "message": first.said,
                "text": str(group),
            }
        )
    return found


def why_of(pod: Pod) -> str:
    """Why a pod failed, or what keeps a container of it from running; empty if neither."""
    failure = failure_of(pod)
    return trouble_of(pod) if failure is None else str(failure)


def attempts_used(job: Job) -> str:
    """Which attempts of a Job are used, of the Job and of what was restarted most often; empty if none is."""
    status, limit = job.status, job.spec.max_retry
    noted = status.controlled_resources or {}
    if not status.retry_count and _RESTARTS not in noted:
        return ""
    from pumice.controller.jobs import restart_budgets  # which most explanations do not need
    from pumice.controller.jobs.podsets import PodNames
    from pumice.controller.jobs.subject import DEFAULT_MAX_RETRY

    limit = DEFAULT_MAX_RETRY if limit is None else limit
    used = [attempts(status.retry_count, limit)] if status.retry_count else []
    if restart_budgets.NOTE in noted:
        count, unit = restart_budgets.most_restarted(noted[restart_budgets.NOTE], PodNames(job))
        used += [attempts(count, limit, unit)] if count else []
    return "; ".join(used)


def last_action(events: Sequence[Mapping[str, Any]]) -> str:
    """The last action of a policy or a Command on a Job, by its events; empty if there is none."""
    for event in reversed(events):
        is_of_job = str(event["object"]).startswith("Job/")
        if is_of_job and event["reason"] in ("ExecuteAction", "CommandIssued"):
            return str(event["message"])
    return ""


async def add_last_lines(
    client: "Client", explanation: Data, pods: Sequence[Pod], number: int, *, only_failed: bool
) -> None:
    """Add the last lines of pods to an explanation: of the first pod of each failure, and of containers that were restarted after one.

    Args:
        client: The connection.
        explanation: The explanation; it says so where the user may not read logs.
        pods: The pods.
        number: Number of lines of each.
        only_failed: Whether a pod without failures has no lines either.
    """
    from pumice.cluster.errors import Forbidden

    shown = {group.pods[0] for group in grouped(pods)}
    found: list[Data] = []
    for pod in pods:
        failure = failure_of(pod)
        if failure is not None and pod.metadata.name in shown and failure.container:
            found.append(_source(pod, failure.container))
        elif failure is None:
            found += _restarted(pod)
    if not found and not only_failed:
        found = [
            _source(pod, each.name) for pod in pods for each in pod.status.container_statuses or ()
        ]
    try:
        for each in found[:_PODS]:
            each |= await _tail(client, each, number)
        explanation["logs"] = found[:_PODS]
    except Forbidden:
        explanation["notAllowed"] = [*explanation["notAllowed"], "pods/log"]


def _source(pod: Pod, container: str, *, previous: bool = False) -> Data:
    meta = pod.metadata
    return {
        "namespace": meta.namespace,
        "pod": meta.name,
        "container": container,
        "previous": previous,
    }


def _restarted(pod: Pod) -> list[Data]:
    """Containers of a pod that failed and were restarted; their former output is what matters."""
    statuses = (
        *(pod.status.init_container_statuses or ()),
        *(pod.status.container_statuses or ()),
    )
    return [
        _source(pod, each.name, previous=True)
        for each in statuses
        if each.last_state and each.last_state.terminated and each.last_state.terminated.exit_code
    ]


async def _tail(client: "Client", source: Data, number: int) -> Data:
    """The last lines of a container; those that the API server does not give have an error instead."""
    from pumice.cluster.errors import ApiError, Forbidden

    query = {
        "container": source["container"],
        "tailLines": str(number),
        "limitBytes": str(_BYTES),
    } | ({"previous": "true"} if source["previous"] else {})
    chunks = bytearray()
    try:
        async for chunk in client.log(source["namespace"], source["pod"], query):
            chunks += chunk
    except Forbidden:
        raise
    except ApiError as error:
        return {"lines": [], "error": cleaned(error.message)}
    lines = bytes(chunks).removesuffix(b"\n").split(b"\n") if chunks else []
    return {"lines": [shortened(shown(line), _LINE) for line in lines], "error": ""}
