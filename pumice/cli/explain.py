"""`pumice explain`: why a Job, gang or pod in a cluster waits, what a queue holds, what would be enough, and the tree of HyperNodes.

As text it has one sentence first, then the details.
"""

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from pumice.cli.output import ListForm, ListPrinter

if TYPE_CHECKING:
    from pumice.api.kinds import Kind
    from pumice.api.pods import Pod
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.client import Client
    from pumice.scheduler import Config
    from pumice.scheduler.simulate import ClusterObjects

EXAMPLES = (
    "pumice explain job mnist",
    "pumice explain job mnist --logs 20",
    "pumice explain job mnist --forecast",
    "pumice explain job/mnist -n research -o json",
    "pumice explain queue research",
    "pumice explain pod mnist-worker-0 --watch",
    "pumice explain jobflow nightly",
    "pumice explain cronjob backup",
    "pumice explain hypernodes",
    "pumice explain hypernodes --state cluster.yaml",
    "pumice explain -A",
)

_DEFAULT = "This is computed with Pumice's default configuration; if the scheduler has another one, name it by --config FILE."

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
    from pumice.api.kinds import JOB
    from pumice.cli.live.names import names

    resources = _kinds()
    before, slash, name = incomplete.rpartition("/")
    typed = context.params.get("target") or [before]
    if (key := _words().get(typed[0].lower())) is not None:
        return [f"{before}{slash}{each}" for each in names(context, resources[key], name)]
    words = [each for each in resources if each.startswith(incomplete)]
    return [] if typed[0] else [*words, *names(context, JOB, incomplete)]


_Logs = Annotated[
    int,
    typer.Option(
        "--logs",
        metavar="N",
        parser=whole_number(0, 1000),
        help="Also the last N lines of pods that failed: of one pod for each cause, five pods at most.",
    ),
]


def _kinds() -> "dict[str, Kind]":
    """What can be named, by the first of its words."""
    from pumice.api.kinds import CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, POD, QUEUE

    kinds = (JOB, QUEUE, POD, JOB_FLOW, CRON_JOB, HYPER_NODE)
    return {each.kind.lower(): each for each in kinds}


def _words() -> dict[str, str]:
    """Words that are accepted before the name, with the first word of their kind; those of HyperNodes also without a name."""
    found = {word: key for key, kind in _kinds().items() for word in kind.words}
    return found | {"cj": "cronjob"}


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
    logs: _Logs = 0,
    forecast: Annotated[
        bool,
        typer.Option(
            "--forecast",
            help="Also when a Job that waits will start if nothing changes; what runs ends as pumice.dev/duration says, else as like Jobs did.",
        ),
    ] = False,
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
    kind = asked[0] if asked is not None else ""
    if everywhere and (asked is not None or namespace is not None):
        what = "--namespace" if asked is None else "/".join(filter(None, asked))
        raise UserError(f"-A lists the gangs of all namespaces that wait; leave out {what}")
    if logs and kind not in ("job", "pod"):
        raise UserError("--logs shows lines of a Job or a pod; name one")
    if forecast and (kind != "job" or state is not None):
        raise UserError("--forecast says when a Job of a cluster starts; name one")
    scheduling, printer = read_config(config), ListPrinter(ListForm(output), watch)
    if state is not None:
        _explain_files(state, asked, watch, _ExplainRun(asked, scheduling, printer, False))
        return
    shown = _ExplainRun(asked, scheduling, printer, watch, logs, forecast, config is None)
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
        if _words().get(words[0].lower()) == "hypernode":
            return "hypernode", ""
        word, slash, name = words[0].rpartition("/")
        word = word if slash else "job"
    elif len(words) == 2 and "/" not in shown:
        word, name = words
    else:
        raise UserError(f"{shown!r}: {_EXPECTED}")
    spelt = word.lower()
    if name and spelt in (kinds := _words()):
        return kinds[spelt], name
    hint = ""
    if spelt.partition(".")[0] in ("podgroup", "podgroups", "pg"):
        hint = "; a PodGroup is explained with its Job, or with one of its pods"
    elif spelt.partition(".")[0] in _OF_PODS or spelt in ("job.batch", "jobs.batch"):
        hint = "; of what others own, one of the pods is explained"
    raise UserError(f"{shown!r}: {_EXPECTED}{hint}")


@dataclass(slots=True)
class _ExplainRun:
    """One explanation, or one after each change."""

    target: Target | None
    config: "Config"
    printer: ListPrinter
    watch: bool
    logs: int = 0
    forecasts: bool = False
    is_default: bool = False
    remark: str = ""

    async def run(self, cluster: ClusterOptions, namespace: str | None, everywhere: bool) -> None:
        async with cluster.connect() as client:
            where = None if everywhere else namespace or client.connection.namespace
            while True:
                if self.target and self.target[0] == "hypernode":
                    from pumice.cli.live.observed import observe_network

                    seen = await observe_network(client)
                    self.print_hyper_nodes(seen.objects, seen.forbidden)
                else:
                    seen, found = await self._look(client, where)
                    self._print(found)
                if not self.watch:
                    return
                from pumice.cli.live.observed import change

                await change(client, seen)

    async def _look(self, client: "Client", where: str | None) -> "tuple[ReadableCluster, Any]":
        """Read the cluster and explain. The named object is read first, so that a wrong name is reported at once."""
        import time

        import msgspec

        from pumice.api.jobs import Job
        from pumice.api.pods import Pod
        from pumice.api.queues import Queue
        from pumice.cli.live import explanations
        from pumice.cli.live.observed import observe
        from pumice.cli.live.simulated import Follower, simulated
        from pumice.scheduler.plugins.fairshare import NAME, storage

        kind = self.target[0] if self.target else ""
        raw: Any = await self._named(client, where) if kind else None
        if kind == "jobflow":
            from pumice.cli.workflows import explain_job_flow

            return await explain_job_flow(client, raw)
        if kind == "cronjob":
            from pumice.cli.workflows import explain_cron_job

            return await explain_cron_job(client, raw, time.time())
        option = self.config.plugin(NAME)
        usage = storage(option.arguments) if option is not None else None
        seen = await observe(client, where, usage=usage)
        now, config = time.time(), self.config
        simulate = Follower(config).follow
        found: Any
        if kind == "job":
            found = explanations.of_job(msgspec.convert(raw, Job), seen, simulate, now)
            names = {each["name"] for each in found["pods"]}
            pods = [each for each in seen.objects.pods if _is_in(each, where, names)]
            await self._add_logs(client, found, pods)
            if self.forecasts:
                from pumice.cli.live.forecasts import forecasts

                told, self.remark = await forecasts(client, seen, config, [found["job"]])
                found["forecast"] = (
                    msgspec.to_builtins(told[found["job"]]) if found["job"] in told else None
                )
        elif kind == "pod":
            pod = msgspec.convert(raw, Pod)
            found = explanations.of_pod(pod, seen, simulate, now)
            await self._add_logs(client, found, [pod])
        elif kind == "queue":
            found = explanations.of_queue(
                msgspec.convert(raw, Queue), seen, simulated(seen, config, now)
            )
        else:
            found = {
                "waiting": explanations.waiting_gangs(seen, simulated(seen, config, now)),
                "notAllowed": seen.forbidden,
            }
        if self.is_default and (found.get("otherReason") or found.get("notEnforced")):
            found["configuration"] = _DEFAULT
        return seen, found

    async def _named(self, client: "Client", where: str | None) -> Any:
        """Read the named object.

        Raises:
            UserError: It does not exist.
        """
        kind, name = self.target or ("", "")
        try:
            return await get(client, _kinds()[kind], name, where)
        except UserError as error:
            meant = _words().get(name)
            if meant is None:
                raise
            message = f"{error}; of a kind, name one: `pumice explain {meant} NAME`"
            raise UserError(message) from None

    async def _add_logs(self, client: "Client", found: Any, pods: "list[Pod]") -> None:
        """Add the last lines of pods, if they are asked for and the user may read them."""
        from pumice.cli.live.failed_pods import add_last_lines

        if self.logs:
            await add_last_lines(client, found, pods, self.logs, only_failed="job" in found)

    def print_hyper_nodes(self, objects: "ClusterObjects", forbidden: list[str]) -> None:
        """Print the tree of HyperNodes, or a part of it."""
        from pumice.cli.live.hyper_nodes import of_hyper_nodes
        from pumice.scheduler.simulate import Simulation, UnreadableObjectError

        assert self.target is not None
        try:
            simulation = Simulation(objects, self.config)
        except UnreadableObjectError as error:
            raise UserError(str(error)) from None
        self._print(of_hyper_nodes(simulation, self.target[1], forbidden))

    def _print(self, found: Any) -> None:
        """Print the explanation, unless it equals the last one."""
        from pumice.cli.live.explanation_text import list_text, text_of

        told = text_of if self.target else list_text
        self.printer.show(found, (), lambda: told(found), self.remark)


def _is_in(pod: "Pod", namespace: str | None, names: set[str]) -> bool:
    return pod.metadata.namespace == namespace and pod.metadata.name in names
