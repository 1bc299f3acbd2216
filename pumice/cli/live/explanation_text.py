"""Explanations as text: one sentence first, then the details; see `explanations` for the data.

The sentence about a Job says why it waits, or where its pods run. `pumice explain` and the demo say the same.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pumice.api.fields import plain
from pumice.api.jobs import Job
from pumice.api.messages import counted
from pumice.api.podgroups import PodGroup, PodGroupCondition
from pumice.api.pods import Pod
from pumice.cli.output import paint, table

_FAILURES = 10
"""Maximum number of causes that are shown."""

_EVENTS = 10
"""Maximum number of events that are shown, the newest ones."""


_SUB_GROUPS = 10
"""Maximum number of sub-groups of a policy that are shown."""

_STATES_OF_SUB_GROUPS = {"Waiting": "waits", "Incomplete": "has too few pods"}


def text_of(explanation: Mapping[str, Any]) -> str:
    """The explanation of a Job, a pod, a queue, a JobFlow, a CronJob or HyperNodes."""
    return "\n".join([paint(explanation["message"], "bold"), *_parts(explanation)])


def list_text(found: Mapping[str, Any]) -> str:
    """Waiting gangs, and what the user may not read."""
    return "\n".join([_waiting_table(found["waiting"]), *_forbidden(found["notAllowed"])])


def _waiting_table(gangs: Sequence[Mapping[str, Any]]) -> str:
    """A table of waiting gangs."""
    if not gangs:
        return "no gang waits"
    rows = [(_shown(g), g["queue"], g["phase"], g["summary"]) for g in gangs]
    return table(("podgroup", "queue", "phase", "why it waits"), rows)


def _shown(gang: Mapping[str, Any]) -> str:
    """`default/mnist (Job)`: a PodGroup by its owner, which users know."""
    if gang["owner"] is None:
        return str(gang["podGroup"])
    kind, _, name = gang["owner"].partition("/")
    return f"{gang['podGroup'].partition('/')[0]}/{name} ({kind})"


def _forbidden(names: Sequence[str]) -> Iterator[str]:
    """What the user may not read, and the consequence."""
    if names:
        yield f"\nNot allowed to read: {plain(', '.join(names))}."


def _parts(explanation: Mapping[str, Any]) -> Iterator[str]:
    if "hyperNodes" in explanation:
        from pumice.cli.live.hyper_nodes import parts

        yield from parts(explanation)
        yield from _forbidden(explanation["notAllowed"])
        return
    summary = explanation.get("summary") or ""
    # The first sentence may say the same in another order.
    if any(each not in explanation["message"] for each in summary.split("; ")):
        yield f"\n{plain(summary)}"
    if forecast := explanation.get("forecast"):
        yield plain(f"Forecast: {forecast['message']}")
    yield from _failed(explanation)
    ahead = explanation.get("ahead") or []
    if ahead:
        listed = ", ".join(ahead[:3]) + (", …" if len(ahead) > 3 else "")
        yield plain(f"Before it in its queue: {len(ahead)} waiting ({listed})")
    if explanation.get("enough"):
        what = " to enter the queue" if explanation.get("enters") else ""
        yield f"Each of these would be enough{what}:"
        yield from (f"  {plain(each['text'])}" for each in explanation["enough"])
    if explanation.get("otherReason") and explanation.get("configuration"):
        yield plain(explanation["configuration"])
    for use in explanation.get("notHereYet") or ():
        yield f"\n{plain(use)}"
    if explanation.get("notComputed"):
        yield f"\nNumbers cannot be computed: {plain(explanation['notComputed'])}"
    if explanation.get("leftOut"):
        yield f"\nNot counted: {plain(explanation['leftOut'])}"
    yield from _group(explanation.get("podGroup"))
    if explanation.get("nominatedNode"):
        yield plain(f"Nominated node: {explanation['nominatedNode']}")
    yield from _resources(explanation.get("resources"))
    if explanation.get("notEnforced"):
        yield plain(explanation["notEnforced"])
        if explanation.get("configuration"):
            yield plain(explanation["configuration"])
    yield from _namespaces(explanation.get("namespaces"))
    if "queue" in explanation and explanation["waiting"]:
        yield "\n" + _waiting_table(explanation["waiting"])
    yield from _objects(explanation)
    yield from _forbidden(explanation["notAllowed"])


def _objects(explanation: Mapping[str, Any]) -> Iterator[str]:
    """What a JobFlow, a CronJob or a Job has made, and events about it."""
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
    if pods := explanation.get("pods"):
        rows = [(pod["name"], pod["phase"], pod["node"] or "-", _why(pod)) for pod in pods]
        yield "\n" + table(("pod", "phase", "node", "why"), rows)
    if events := explanation.get("events"):
        rows = [(e["time"], e["object"], e["reason"], e["message"]) for e in events[-_EVENTS:]]
        yield "\n" + table(("time", "object", "event", "message"), rows)


def _failed(explanation: Mapping[str, Any]) -> Iterator[str]:
    """Why pods failed, unless the first sentence says it, the attempts, and the last lines of logs."""
    told = [each["text"] for each in explanation.get("failures") or ()]
    new = [each for each in told if each not in explanation["message"]]
    lines = [f"  {plain(each)}" for each in new[:_FAILURES]]
    if lines:
        yield "\nFailed pods:"
        yield from lines
        if len(new) > _FAILURES:
            yield f"  and {len(new) - _FAILURES} more causes"
    if (used := explanation.get("attempts")) and used not in explanation["message"]:
        yield plain(f"{used[0].upper()}{used[1:]}")
    action = explanation.get("lastAction") or ""
    if action and action.partition(": ")[2] not in explanation["message"]:
        yield plain(f"Last action: {action}")
    for log in explanation.get("logs") or ():
        former = ", before its restart" if log["previous"] else ""
        what = f"Last lines of {log['pod']}, container {log['container']}{former}:"
        yield f"\n{plain(what)}"
        yield from (f"  {plain(line)}" for line in log["lines"] or [log["error"] or "(none)"])


def _group(group: Mapping[str, Any] | None) -> Iterator[str]:
    if group is None:
        return
    phase, queue = group["phase"] or "Pending", group["queue"] or "default"
    said = f"PodGroup {group['name']}: {phase}, queue {queue}, at least {counted(group['minMember'], 'pod')}"
    yield f"\n{plain(said)}"
    for each in group["conditions"]:
        if each.status == "True":  # the others were true once
            said = f"{each.type}=True {': '.join(filter(None, (each.reason, each.message)))}"
            yield f"  {plain(said)}"
    for policy in group["subGroupPolicies"]:
        yield from _sub_groups(policy)
    if network := group.get("network"):
        yield from _network(network)


def _network(network: Mapping[str, Any]) -> Iterator[str]:
    """In which HyperNodes a gang and its sub-groups are."""
    yield plain(f"  its pods are in {_domain(network)}")
    groups = network["subGroups"]
    for each in groups[:_SUB_GROUPS]:
        name = " ".join((each["policy"], *each["labels"].values()))
        yield plain(f"    {name} in {_domain(each)}")
    if len(groups) > _SUB_GROUPS:
        yield f"    and {len(groups) - _SUB_GROUPS} more"


def _domain(found: Mapping[str, Any]) -> str:
    if found["hyperNode"] is None:
        return "no HyperNode together"
    return f"HyperNode {found['hyperNode']} (tier {found['tier']})"


def _sub_groups(policy: Mapping[str, Any]) -> Iterator[str]:
    """The sub-groups of a policy: how many are ready, and those that are not."""
    groups, needed = policy["subGroups"], policy["minSubGroups"]
    said = f"{policy['ready']} of {len(groups)} sub-groups of {policy['name']} are ready"
    yield plain(f"  {said}, at least {needed}" if needed else f"  {said}, none is required")
    others = [each for each in groups if each["state"] != "Ready"]
    for each in others[:_SUB_GROUPS]:
        name = ", ".join(each["labels"].values()) or policy["name"]
        state = _STATES_OF_SUB_GROUPS[each["state"]]
        yield plain(
            f"    {name} {state}: {each['ready']} of {counted(each['size'], 'pod')} have a place"
        )
    if len(others) > _SUB_GROUPS:
        yield f"    and {len(others) - _SUB_GROUPS} more"


def _resources(resources: Mapping[str, Mapping[str, str | None]] | None) -> Iterator[str]:
    if resources:
        columns = ("used", "asked", "guarantee", "deserved", "capability")
        rows = [
            (name, *(has[column] or "-" for column in columns)) for name, has in resources.items()
        ]
        yield "\n" + table(("resource", *columns), rows)


def _namespaces(shares: Mapping[str, Any] | None) -> Iterator[str]:
    """What namespaces of a queue have used, those first that go first."""
    if shares and shares["byNamespace"]:
        rows = [
            (name, f"{row['usedHours']:.2f}", row["holds"], row["waitsFor"], row["share"])
            for name, row in shares["byNamespace"].items()
        ]
        yield f"\nNamespaces by what they have used of {plain(shares['resource'])}, in hours of one, with a half-life:"
        yield table(("namespace", "used", "holds", "waits for", "fair share"), rows)


def _why(pod: Mapping[str, Any]) -> str:
    """Why a pod has no node; a pod without a reason of its own waits for its gang."""
    waits = pod["phase"] == "Pending" and not pod["node"]
    return pod["message"] or ("waits for its gang" if waits else "")


def current_condition(group: PodGroup | None) -> PodGroupCondition | None:
    """The newest condition of a PodGroup with status True."""
    conditions = (group.status.conditions if group else None) or []
    holding = [each for each in conditions if each.status == "True"]
    if not holding:
        return None
    # Times have whole seconds only; among equals the later entry is the newer one.
    return max(reversed(holding), key=lambda each: each.last_transition_time or "")


def is_waiting(job: Job) -> bool:
    """Whether a Job has not started yet."""
    return job.status.state.phase in ("", "Pending", "Restarting")


def lacks_pods(job: Job) -> bool:
    """Whether a Job runs and some of its pods do not."""
    return job.status.state.phase == "Running" and job.status.pending > 0


def places(pods: Sequence[Pod]) -> str:
    """`node1 (2 pods), node3 (1 pod)`, most pods first; empty when no pod has a node."""
    counts = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{node} ({counted(count, 'pod')})" for node, count in ordered)


def sentence(job: Job, group: PodGroup | None, pods: Sequence[Pod]) -> str:
    """Why a Job waits, or where its pods run."""
    state = job.status.state
    name = f"Job {job.metadata.key}"
    if is_waiting(job):
        return f"{name} waits: {wait_reason(job, group, pods)}"
    where = places(pods)
    if state.phase == "Running":
        reason = f"; {state.message}" if state.message else ""
        return f"{name} runs on {where or 'no node yet'}{reason}"
    because = f": {state.message}" if state.message else ""
    ran = f"; its pods were on {where}" if where else ""
    return f"{name} is {state.phase}{because}{ran}"


def wait_reason(job: Job, group: PodGroup | None, pods: Sequence[Pod]) -> str:
    """The most specific reason: the controller's, else the scheduler's, else the missing object."""
    if job.status.state.message:
        return job.status.state.message
    condition = current_condition(group)
    if condition is not None and condition.type != "Scheduled" and condition.message:
        return condition.message
    if not job.status.state.phase:
        return "no controller has looked at it yet; is `pumice controller` running?"
    if group is None:
        return "it has no PodGroup yet; is `pumice controller` running?"
    if group.status.phase in ("", "Pending"):
        queue = group.spec.queue or "default"
        return (
            f"the scheduler has not let it into queue {queue} yet; is `pumice scheduler` running?"
        )
    missing = job.replicas - len(pods)
    if missing > 0:
        return _some(missing, job.replicas, "not exist")
    idle = sum(1 for pod in pods if pod.status.phase in ("", "Pending"))
    if not idle:
        return "all of its pods have started, which its status does not say yet"
    return _some(idle, job.replicas, "not run")


def _some(number: int, total: int, what: str) -> str:
    """As the controller says it."""
    return (
        f"{number} of {total} pods do {what} yet" if total > 1 else f"its only pod does {what} yet"
    )
