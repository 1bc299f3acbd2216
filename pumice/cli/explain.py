"""`pumice explain`: why a live Job waits, or where it went."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from pumice.api.fields import plain
from pumice.cli.exits import UserError
from pumice.cli.options import Kubeconfig, Output, Server
from pumice.cli.output import Format, paint, table, write, write_json

__all__ = ["EXAMPLES", "explain"]

EXAMPLES = (
    "pumice explain job/mnist",
    "pumice explain job/mnist -n research -o json",
)

JOB_WORDS = frozenset({"job", "jobs", "vcjob", "vj", "jobs.batch.volcano.sh"})
"""What may stand before the slash."""


def explain(
    target: Annotated[str, typer.Argument(metavar="job/NAME", help="The Job.", show_default=False)],
    namespace: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--namespace",
            help="Its namespace; the kubeconfig's otherwise.",
            show_default=False,
        ),
    ] = None,
    output: Output = Format.TEXT,
    kubeconfig: Kubeconfig = None,
    server: Server = None,
) -> None:
    """Say why a live Job waits, or where it went.

    One sentence first, then what it follows from: PodGroup, pods and events.
    """
    import asyncio

    from pumice.cluster.connection import ConfigurationError
    from pumice.cluster.errors import ApiError

    kind, slash, name = target.rpartition("/")
    if not name or (slash and kind not in JOB_WORDS):
        raise UserError(f"{target!r}: expected job/NAME")
    try:
        found = asyncio.run(_find(name, namespace, str(kubeconfig) if kubeconfig else None, server))
    except (ConfigurationError, ApiError) as error:
        raise UserError(str(error)) from None
    if output is Format.JSON:
        write_json(found.as_json())
    else:
        _write_text(found)


@dataclass(frozen=True, slots=True)
class _Found:
    """A Job and everything that tells of it, as structs (`Any` keeps imports lazy)."""

    job: Any
    group: Any
    pods: list[Any]
    events: list[dict[str, Any]]

    @property
    def sentence(self) -> str:
        from pumice.cli.story import sentence

        return sentence(self.job, self.group, self.pods)

    def as_json(self) -> dict[str, Any]:
        from pumice.cli.story import is_waiting

        group = self.group
        state = self.job.status.state
        return {
            "job": f"{self.job.metadata.namespace}/{self.job.metadata.name}",
            "phase": state.phase,
            "waiting": is_waiting(self.job),
            "message": self.sentence,
            "podGroup": group
            and {
                "name": group.metadata.name,
                "queue": group.spec.queue,
                "phase": group.status.phase,
                "conditions": group.status.conditions or [],
            },
            "pods": [
                {
                    "name": pod.metadata.name,
                    "phase": pod.status.phase,
                    "node": pod.spec.node_name,
                    "reason": _condition(pod).reason,
                    "message": _condition(pod).message,
                }
                for pod in self.pods
            ],
            "events": self.events,
        }


async def _find(
    name: str, namespace: str | None, kubeconfig: str | None, server: str | None
) -> _Found:
    import msgspec

    from pumice.api import keys
    from pumice.api.jobs import Job
    from pumice.api.kinds import EVENT, JOB, POD, POD_GROUP
    from pumice.api.names import pod_group_name
    from pumice.api.podgroups import PodGroup
    from pumice.api.pods import Pod
    from pumice.cluster.client import Client
    from pumice.cluster.errors import NotFound

    async with Client.connect(kubeconfig, server) as client:
        where = namespace or client.connection.namespace
        try:
            job = msgspec.convert(await client.get(JOB, name, where), Job)
        except NotFound:
            raise UserError(f"job/{name}: there is no such Job in namespace {where}") from None
        group: PodGroup | None = None
        try:
            group_name = pod_group_name(name, job.metadata.uid)
            group = msgspec.convert(await client.get(POD_GROUP, group_name, where), PodGroup)
        except NotFound:
            pass
        listed = await client.list(POD, where, label_selector=f"{keys.JOB_NAME}={name}")
        pods = [msgspec.convert(each, Pod) for each in listed["items"]]
        pods.sort(key=_position)
        uids = {job.metadata.uid, *(pod.metadata.uid for pod in pods)}
        if group is not None:
            uids.add(group.metadata.uid)
        events = (await client.list(EVENT, where))["items"]
        return _Found(job, group, pods, _told(events, uids))


def _position(pod: Any) -> tuple[str, int, str]:
    from pumice.api import keys
    from pumice.plugins.native.places import number_in

    index = pod.metadata.label(keys.TASK_INDEX) or pod.metadata.annotation(keys.TASK_INDEX)
    task = pod.metadata.annotation(keys.TASK_SPEC)
    return task, number_in(index) or 0, pod.metadata.name


def _told(events: list[dict[str, Any]], uids: set[str]) -> list[dict[str, Any]]:
    """Events about the Job, its PodGroup and its pods, oldest first."""
    told = []
    for event in events:
        about = event.get("involvedObject") or {}
        if about.get("uid") in uids:
            told.append(
                {
                    "time": event.get("lastTimestamp") or event.get("eventTime") or "",
                    "type": event.get("type", ""),
                    "object": f"{about.get('kind', '')}/{about.get('name', '')}",
                    "reason": event.get("reason", ""),
                    "message": event.get("message", ""),
                    "count": event.get("count", 1),
                }
            )
    return sorted(told, key=lambda each: (each["time"], each["object"]))


def _condition(pod: Any) -> Any:
    """The condition that says why a pod has no place."""
    from pumice.api.pods import PodCondition

    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition
    return PodCondition()


def _why(pod: Any) -> str:
    """Why a pod has no node; where no cause is its own, it waits for its gang."""
    waits = pod.status.phase == "Pending" and not pod.spec.node_name
    return _condition(pod).message or ("waits for its gang" if waits else "")


def _write_text(found: _Found) -> None:
    write(paint(found.sentence, "bold"))
    if found.group is not None:
        status = found.group.status
        write(
            f"\nPodGroup {found.group.metadata.name}: {status.phase or 'Pending'}, queue "
            f"{found.group.spec.queue or 'default'}, at least {found.group.spec.min_member} pods"
        )
        for condition in status.conditions or ():
            said = f"{condition.type}={condition.status} {condition.reason}: {condition.message}"
            write(f"  {plain(said)}")
    if found.pods:
        rows = [
            (
                pod.metadata.name,
                pod.status.phase,
                pod.spec.node_name or "-",
                _why(pod),
            )
            for pod in found.pods
        ]
        write("\n" + table(("pod", "phase", "node", "why"), rows))
    if found.events:
        rows = [(e["time"], e["object"], e["reason"], e["message"]) for e in found.events[-10:]]
        write("\n" + table(("time", "object", "event", "message"), rows))
