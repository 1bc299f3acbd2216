"""Text of `pumice explain`: one sentence first, then the details."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pumice.api.fields import plain
from pumice.cli.output import paint, table

__all__ = ["list_text", "text_of"]

_EVENTS = 10
"""Maximum number of events that are shown, the newest ones."""


def text_of(explanation: Mapping[str, Any]) -> str:
    """The explanation of a Job, a pod, a queue, a JobFlow or a CronJob."""
    return "\n".join([paint(explanation["message"], "bold"), *_parts(explanation)])


def list_text(found: Mapping[str, Any]) -> str:
    """Waiting gangs, and what the user may not read."""
    return "\n".join([_waiting_table(found["waiting"]), *_forbidden(found["notAllowed"])])


def _waiting_table(gangs: Sequence[Mapping[str, Any]]) -> str:
    """A table of waiting gangs."""
    if not gangs:
        return "no gang waits"
    rows = [(g["podGroup"], g["queue"], g["phase"], g["summary"]) for g in gangs]
    return table(("podgroup", "queue", "phase", "why it waits"), rows)


def _forbidden(names: Sequence[str]) -> Iterator[str]:
    """What the user may not read, and the consequence."""
    if names:
        yield f"\nNot allowed to read: {plain(', '.join(names))}."


def _parts(explanation: Mapping[str, Any]) -> Iterator[str]:
    if explanation.get("summary"):
        yield f"\n{plain(explanation['summary'])}"
    ahead = explanation.get("ahead") or []
    if ahead:
        listed = ", ".join(ahead[:3]) + (", …" if len(ahead) > 3 else "")
        yield plain(f"Before it in its queue: {len(ahead)} waiting ({listed})")
    if explanation.get("enough"):
        yield "Each of these would be enough:"
        yield from (f"  {plain(each['text'])}" for each in explanation["enough"])
    if explanation.get("notComputed"):
        yield f"\nNumbers cannot be computed: {plain(explanation['notComputed'])}"
    yield from _group(explanation.get("podGroup"))
    if explanation.get("nominatedNode"):
        yield plain(f"Nominated node: {explanation['nominatedNode']}")
    yield from _resources(explanation.get("resources"))
    if "queue" in explanation and explanation["waiting"]:
        yield "\n" + _waiting_table(explanation["waiting"])
    if flows := explanation.get("flows"):
        rows = [
            (each["name"], each["job"], each["phase"] or "-", each["message"]) for each in flows
        ]
        yield "\n" + table(("flow", "job", "phase", "why"), rows)
    if runs := explanation.get("nextRuns"):
        yield f"\nNext runs: {plain(', '.join(runs))} ({plain(explanation['timeZone'])})"
    if jobs := explanation.get("jobs"):
        yield "\n" + table(
            ("job", "phase"), [(each["name"], each["phase"] or "-") for each in jobs]
        )
    pods = explanation.get("pods")
    if pods:
        rows = [(pod["name"], pod["phase"], pod["node"] or "-", _why(pod)) for pod in pods]
        yield "\n" + table(("pod", "phase", "node", "why"), rows)
    events = explanation.get("events")
    if events:
        rows = [(e["time"], e["object"], e["reason"], e["message"]) for e in events[-_EVENTS:]]
        yield "\n" + table(("time", "object", "event", "message"), rows)
    yield from _forbidden(explanation["notAllowed"])


def _group(group: Mapping[str, Any] | None) -> Iterator[str]:
    if group is None:
        return
    phase, queue = group["phase"] or "Pending", group["queue"] or "default"
    said = f"PodGroup {group['name']}: {phase}, queue {queue}, at least {group['minMember']} pods"
    yield f"\n{plain(said)}"
    for each in group["conditions"]:
        yield "  " + plain(f"{each.type}={each.status} {each.reason}: {each.message}")


def _resources(resources: Mapping[str, Mapping[str, str | None]] | None) -> Iterator[str]:
    if resources:
        columns = ("used", "asked", "guarantee", "deserved", "capability")
        rows = [
            (name, *(has[column] or "-" for column in columns)) for name, has in resources.items()
        ]
        yield "\n" + table(("resource", *columns), rows)


def _why(pod: Mapping[str, Any]) -> str:
    """Why a pod has no node; a pod without a reason of its own waits for its gang."""
    waits = pod["phase"] == "Pending" and not pod["node"]
    return pod["message"] or ("waits for its gang" if waits else "")
