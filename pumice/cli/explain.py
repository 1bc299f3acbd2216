"""`pumice explain`: why a Job, gang or pod in a cluster waits, what a queue holds, what would be enough, and the tree of HyperNodes.

As text it has one sentence first, then the details.
"""

import enum
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pumice.api.fields import plain
from pumice.cli.exits import UserError
from pumice.cli.files.configuration import read_config
from pumice.cli.live.sessions import get, run
from pumice.cli.options import (
    ClusterOptions,
    Namespace,
    SchedulerConfig,
    Watch,
    output_option,
    state_option,
    whole_number,
)
from pumice.cli.output import Form, json_line, paint, table, write, write_document, write_result

if TYPE_CHECKING:
    from pumice.api.pods import Pod
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.client import Client
    from pumice.scheduler import Config
    from pumice.scheduler.simulate import ClusterObjects

__all__ = ["EXAMPLES", "explain", "list_text", "text_of"]

EXAMPLES = (
    "pumice explain job mnist",
    "pumice explain job mnist --logs 20",
    "pumice explain job/mnist -n research -o json",
    "pumice explain queue research",
    "pumice explain pod mnist-worker-0 --watch",
    "pumice explain jobflow nightly",
    "pumice explain cronjob backup",
    "pumice explain hypernodes",
    "pumice explain hypernodes --state cluster.yaml",
    "pumice explain -A",
)

_WORDS = {
    "job": ("job", "jobs", "vcjob", "vj", "job.batch.volcano.sh", "jobs.batch.volcano.sh"),
    "queue": (
        "queue",
        "queues",
        "q",
        "queue.scheduling.volcano.sh",
        "queues.scheduling.volcano.sh",
    ),
    "pod": ("pod", "pods", "po"),
    "jobflow": ("jobflow", "jobflows", "jf", "jobflow.flow.volcano.sh", "jobflows.flow.volcano.sh"),
    "cronjob": (
        "cronjob",
        "cronjobs",
        "cj",
        "cronvcjob",
        "cronvj",
        "cronjob.batch.volcano.sh",
        "cronjobs.batch.volcano.sh",
    ),
    "hypernode": (
        "hypernode",
        "hypernodes",
        "hn",
        "hypernode.topology.volcano.sh",
        "hypernodes.topology.volcano.sh",
    ),
}
"""Words that are accepted before the name; those of HyperNodes also without one."""

_EXPECTED = "expected job/NAME, queue/NAME, pod/NAME, jobflow/NAME, cronjob/NAME, hypernode/NAME or hypernodes"

_OF_PODS = frozenset(
    f"{name}{ending}"
    for name in (
        "deployment",
        "replicaset",
        "statefulset",
        "daemonset",
        "jobset",
        "leaderworkerset",
    )
    for ending in ("", "s")
) | {"deploy", "rs", "sts", "ds", "lws"}
"""Words for kinds of other controllers, which own pods."""

Target = tuple[str, str]


class _Form(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def _complete(context: typer.Context, incomplete: str) -> list[str]:
    """What may follow: kinds, and names of objects of the cluster."""
    from pumice.api.kinds import CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, POD, QUEUE
    from pumice.cli.live.names import names

    resources = {"job": JOB, "queue": QUEUE, "pod": POD, "jobflow": JOB_FLOW, "cronjob": CRON_JOB}
    resources["hypernode"] = HYPER_NODE
    kinds = {word: kind for key, kind in resources.items() for word in _WORDS[key]}
    before, slash, name = incomplete.rpartition("/")
    typed = context.params.get("target") or [before]
    if (kind := kinds.get(typed[0].lower())) is not None:
        return [f"{before}{slash}{each}" for each in names(context, kind, name)]
    words = [each for each in resources if each.startswith(incomplete)]
    return [] if typed[0] else [*words, *names(context, JOB, incomplete)]


def explain(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[job|queue|pod|jobflow|cronjob|hypernode NAME]",
            help="What to explain, also as KIND/NAME; a name alone is a Job. hypernodes: the whole tree. Without it, all waiting gangs.",
            autocompletion=_complete,
        ),
    ] = None,
    namespace: Namespace = None,
    everywhere: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Waiting gangs of all namespaces.")
    ] = False,
    watch: Watch = False,
    logs: Annotated[
        int,
        typer.Option(
            "--logs",
            metavar="N",
            parser=whole_number(0, 1000),
            help="Also the last N lines of pods that failed: of one pod for each cause, five pods at most.",
        ),
    ] = 0,
    config: SchedulerConfig = None,
    state: Annotated[
        list[str] | None,
        state_option(
            "HyperNodes, Nodes and Pods, for `explain hypernodes` without a cluster. Several files may follow."
        ),
    ] = None,
    output: Annotated[_Form, output_option("Form of the result.")] = _Form.TEXT,
    *,
    cluster: ClusterOptions,
) -> None:
    """Say why a Job or pod waits or failed, or what a queue holds.

    For a queue: what it holds and asks for by resource, and which gangs wait in it, in order. For a Job or pod: one sentence first, then numbers and what would be enough, computed by a scheduling cycle on what you may read; then
    why pods failed and which attempts are used, PodGroup, pods and events. For a JobFlow: the Job of each flow, or what it waits for. For a CronJob: why the last run has no Job, and the next runs. For HyperNodes: the tree, with what is free in each. What you may not read is named. Exit code 0, also when it waits.
    """
    asked = _target(target or [])
    if everywhere and (asked is not None or namespace is not None):
        what = "--namespace" if asked is None else "/".join(filter(None, asked))
        raise UserError(f"-A lists the gangs of all namespaces that wait; leave out {what}")
    if logs and (asked is None or asked[0] not in ("job", "pod")):
        raise UserError("--logs shows lines of a Job or a pod; name one")
    scheduling = read_config(config)
    if state is not None:
        _explain_files(state, asked, watch, _ExplainRun(asked, scheduling, output, False, 0))
        return
    shown = _ExplainRun(asked, scheduling, output, watch, logs, is_default=config is None)
    run(shown.run(cluster, namespace, everywhere))


def _explain_files(
    state: list[str], asked: Target | None, watch: bool, shown: "_ExplainRun"
) -> None:
    """Explain HyperNodes of files."""
    if asked is None or asked[0] != "hypernode":
        message = "--state is for hypernodes; `pumice simulate --state FILE --explain` says why gangs of files wait"
        raise UserError(message)
    if watch:
        raise UserError("--watch follows a cluster; leave it out, or --state")
    from pumice.cli.files.manifests import named, read
    from pumice.cli.simulation.simulation_input import SimulationInput

    shown.print_hyper_nodes(SimulationInput.of(named(read(state))).objects, [])


def _target(words: list[str]) -> Target | None:
    """The kind and name in the arguments."""
    if not words:
        return None
    shown = " ".join(words)
    if len(words) == 1:
        if words[0].lower() in _WORDS["hypernode"]:
            return "hypernode", ""
        word, slash, name = words[0].rpartition("/")
        word = word if slash else "job"
    elif len(words) == 2 and "/" not in shown:
        word, name = words
    else:
        raise UserError(f"{shown!r}: {_EXPECTED}")
    for kind, spellings in _WORDS.items():
        if word.lower() in spellings and name:
            return kind, name
    spelt = word.lower()
    hint = ""
    if spelt.partition(".")[0] in ("podgroup", "podgroups", "pg"):
        hint = "; a PodGroup is explained with its Job, or with one of its pods"
    elif spelt.partition(".")[0] in _OF_PODS or spelt in ("job.batch", "jobs.batch"):
        hint = "; of what others own, one of the pods is explained"
    raise UserError(f"{shown!r}: {_EXPECTED}{hint}")


class _ExplainRun:
    """One explanation, or one after each change."""

    def __init__(
        self,
        target: Target | None,
        config: "Config",
        output: _Form,
        watch: bool,
        logs: int,
        *,
        is_default: bool = False,
    ) -> None:
        self._target = target
        self._is_default = is_default
        self._config = config
        self._output = output
        self._watch = watch
        self._logs = logs
        self._printed: str | None = None

    async def run(self, cluster: ClusterOptions, namespace: str | None, everywhere: bool) -> None:
        async with cluster.connect() as client:
            where = None if everywhere else namespace or client.connection.namespace
            while True:
                if self._target and self._target[0] == "hypernode":
                    from pumice.cli.live.observed import observe_network

                    seen = await observe_network(client)
                    self.print_hyper_nodes(seen.objects, seen.forbidden)
                else:
                    seen, found = await self._look(client, where)
                    self._print(found)
                if not self._watch:
                    return
                from pumice.cli.live.observed import change

                await change(client, seen)

    async def _look(self, client: "Client", where: str | None) -> "tuple[ReadableCluster, Any]":
        """Read the cluster and explain. The named object is read first, so that a wrong name is reported at once."""
        import time

        import msgspec

        from pumice.api.jobs import Job
        from pumice.api.kinds import CRON_JOB, JOB, JOB_FLOW, POD, QUEUE
        from pumice.api.pods import Pod
        from pumice.api.queues import Queue
        from pumice.cli.live import explanations
        from pumice.cli.live.observed import observe

        kind, name = self._target or ("", "")
        raw: Any = None
        if kind:
            resources = {"job": JOB, "pod": POD, "queue": QUEUE}
            resources |= {"jobflow": JOB_FLOW, "cronjob": CRON_JOB}
            try:
                raw = await get(client, resources[kind], name, where)
            except UserError as error:
                meant = next((word for word, all_ in _WORDS.items() if name in all_), None)
                if meant is None:
                    raise
                raise UserError(
                    f"{error}; of a kind, name one: `pumice explain {meant} NAME`"
                ) from None
        if kind == "jobflow":
            from pumice.cli.workflows import explain_job_flow

            return await explain_job_flow(client, raw)
        if kind == "cronjob":
            from pumice.cli.workflows import explain_cron_job

            return await explain_cron_job(client, raw, time.time())
        seen = await observe(client, where)
        now, config = time.time(), self._config
        found: Any
        if kind == "job":
            found = explanations.of_job(msgspec.convert(raw, Job), seen, config, now)
            names = {each["name"] for each in found["pods"]}
            pods = [each for each in seen.objects.pods if _is_in(each, where, names)]
            await self._add_logs(client, found, pods)
        elif kind == "pod":
            pod = msgspec.convert(raw, Pod)
            found = explanations.of_pod(pod, seen, config, now)
            await self._add_logs(client, found, [pod])
        elif kind == "queue":
            found = explanations.of_queue(msgspec.convert(raw, Queue), seen, config, now)
        else:
            found = {
                "waiting": explanations.waiting_gangs(seen, config, now),
                "notAllowed": seen.forbidden,
            }
        if self._is_default and (found.get("otherReason") or found.get("notEnforced")):
            found["configuration"] = _DEFAULT
        return seen, found

    async def _add_logs(self, client: "Client", found: Any, pods: "list[Pod]") -> None:
        """Add the last lines of pods, if they are asked for and the user may read them."""
        from pumice.cli.live.failed_pods import last_lines
        from pumice.cluster.errors import Forbidden

        if not self._logs:
            return
        try:
            only_failed = "job" in found
            found["logs"] = await last_lines(client, pods, self._logs, only_failed=only_failed)
        except Forbidden:
            found["notAllowed"] = [*found["notAllowed"], "pods/log"]

    def print_hyper_nodes(self, objects: "ClusterObjects", forbidden: list[str]) -> None:
        """Print the tree of HyperNodes, or a part of it."""
        from pumice.cli.live.hyper_nodes import of_hyper_nodes
        from pumice.scheduler.simulate import Simulation, UnreadableObjectError

        assert self._target is not None
        try:
            simulation = Simulation(objects, self._config)
        except UnreadableObjectError as error:
            raise UserError(str(error)) from None
        self._print(of_hyper_nodes(simulation, self._target[1], forbidden))

    def _print(self, found: Any) -> None:
        """Print the explanation, unless it equals the last one."""
        from pumice.cli.explain import list_text, text_of

        line = json_line(found)
        if line == self._printed:
            return
        again = self._printed is not None
        if self._output is _Form.JSON and self._watch:
            write_document(line)  # one document a line, for programs that read as they come
        elif self._output is _Form.TEXT:
            text = text_of(found) if self._target else list_text(found)
            write(f"\n{text}" if again else text)
        else:
            if again:
                write_document("---")
            write_result(Form(self._output), found, (), str)
        sys.stdout.flush()
        self._printed = line


def _is_in(pod: "Pod", namespace: str | None, names: set[str]) -> bool:
    return pod.metadata.namespace == namespace and pod.metadata.name in names


_FAILURES = 10
"""Maximum number of causes that are shown."""

_EVENTS = 10
"""Maximum number of events that are shown, the newest ones."""


_DEFAULT = "This is computed with Pumice's default configuration; if the scheduler has another one, name it by --config FILE."

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
    yield from _group(explanation.get("podGroup"))
    if explanation.get("nominatedNode"):
        yield plain(f"Nominated node: {explanation['nominatedNode']}")
    yield from _resources(explanation.get("resources"))
    if explanation.get("notEnforced"):
        yield plain(explanation["notEnforced"])
        if explanation.get("configuration"):
            yield plain(explanation["configuration"])
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
    said = f"PodGroup {group['name']}: {phase}, queue {queue}, at least {_pods(group['minMember'])}"
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
        yield plain(f"    {name} {state}: {each['ready']} of {_pods(each['size'])} have a place")
    if len(others) > _SUB_GROUPS:
        yield f"    and {len(others) - _SUB_GROUPS} more"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


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
