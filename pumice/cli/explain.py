"""`pumice explain`: why a Job, gang or pod in a cluster waits, what a queue holds, and what would be enough."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pumice.cli.exits import UserError
from pumice.cli.files.configuration import read_config
from pumice.cli.live.sessions import get, run
from pumice.cli.options import (
    ClusterOptions,
    Namespace,
    Output,
    SchedulerConfig,
    Watch,
)
from pumice.cli.output import Format, json_line, write, write_document, write_json

if TYPE_CHECKING:
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.client import Client
    from pumice.scheduler import Config

__all__ = ["EXAMPLES", "explain"]

EXAMPLES = (
    "pumice explain job mnist",
    "pumice explain job/mnist -n research -o json",
    "pumice explain queue research",
    "pumice explain pod mnist-worker-0 --watch",
    "pumice explain jobflow nightly",
    "pumice explain cronjob backup",
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
        "cronvcjob",
        "cronvj",
        "cronjob.batch.volcano.sh",
        "cronjobs.batch.volcano.sh",
    ),
}
"""Words that are accepted before the name."""

_EXPECTED = "expected job/NAME, queue/NAME, pod/NAME, jobflow/NAME or cronjob/NAME"

Target = tuple[str, str]


def explain(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[job|queue|pod|jobflow|cronjob NAME]",
            help="What to explain, also as KIND/NAME; a name alone is a Job. Without it, all waiting gangs.",
        ),
    ] = None,
    namespace: Namespace = None,
    everywhere: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Waiting gangs of all namespaces.")
    ] = False,
    watch: Watch = False,
    config: SchedulerConfig = None,
    output: Output = Format.TEXT,
    *,
    cluster: ClusterOptions,
) -> None:
    """Say why a live Job, gang or pod waits, or what a queue holds.

    For a queue: what it holds and asks for by resource, and which gangs wait in it, in order. For a Job or pod: one sentence first, then numbers and what would be enough, computed by a scheduling cycle on what you may read; then
    PodGroup, pods and events. For a JobFlow: the Job of each flow, or what it waits for. For a CronJob: why the last run has no Job, and the next runs. What you may not read is named. Exit code 0, also when it waits.
    """
    asked = _target(target or [])
    if everywhere and (asked is not None or namespace is not None):
        what = "--namespace" if asked is None else f"{asked[0]}/{asked[1]}"
        raise UserError(f"-A lists the gangs of all namespaces that wait; leave out {what}")
    scheduling = read_config(config)
    run(_ExplainRun(asked, scheduling, output, watch).run(cluster, namespace, everywhere))


def _target(words: list[str]) -> Target | None:
    """The kind and name in the arguments."""
    if not words:
        return None
    shown = " ".join(words)
    if len(words) == 1:
        word, slash, name = words[0].rpartition("/")
        word = word if slash else "job"
    elif len(words) == 2 and "/" not in shown:
        word, name = words
    else:
        raise UserError(f"{shown!r}: {_EXPECTED}")
    for kind, spellings in _WORDS.items():
        if word.lower() in spellings and name:
            return kind, name
    group = "; a PodGroup is explained with its Job, or with one of its pods"
    hint = group if word.lower().partition(".")[0] in ("podgroup", "podgroups", "pg") else ""
    raise UserError(f"{shown!r}: {_EXPECTED}{hint}")


class _ExplainRun:
    """One explanation, or one after each change."""

    def __init__(
        self, target: Target | None, config: "Config", output: Format, watch: bool
    ) -> None:
        self._target = target
        self._config = config
        self._output = output
        self._watch = watch
        self._printed: str | None = None

    async def run(self, cluster: ClusterOptions, namespace: str | None, everywhere: bool) -> None:
        from pumice.cli.live.observed import change

        async with cluster.connect() as client:
            where = None if everywhere else namespace or client.connection.namespace
            while True:
                seen, found = await self._look(client, where)
                self._print(found)
                if not self._watch:
                    return
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
        from pumice.cli.workflows import cron_jobs, job_flows

        kind, name = self._target or ("", "")
        raw: Any = None
        if kind:
            resources = {"job": JOB, "pod": POD, "queue": QUEUE}
            resources |= {"jobflow": JOB_FLOW, "cronjob": CRON_JOB}
            raw = await get(client, resources[kind], name, where)
        if kind == "jobflow":
            return await job_flows.explanation(client, raw)
        if kind == "cronjob":
            return await cron_jobs.explanation(client, raw, time.time())
        seen = await observe(client, where)
        now, config = time.time(), self._config
        found: Any
        if kind == "job":
            found = explanations.of_job(msgspec.convert(raw, Job), seen, config, now)
        elif kind == "pod":
            found = explanations.of_pod(msgspec.convert(raw, Pod), seen, config, now)
        elif kind == "queue":
            found = explanations.of_queue(msgspec.convert(raw, Queue), seen, config, now)
        else:
            found = {
                "waiting": explanations.waiting_gangs(seen, config, now),
                "notAllowed": seen.forbidden,
            }
        return seen, found

    def _print(self, found: Any) -> None:
        """Print the explanation, unless it equals the last one."""
        from pumice.cli.live.explain_text import list_text, text_of

        line = json_line(found)
        if line == self._printed:
            return
        if self._output is Format.JSON:
            # One document a line, so that a program can read them as they come.
            write_document(line) if self._watch else write_json(found)
        else:
            again = "" if self._printed is None else "\n"
            write(again + (text_of(found) if self._target else list_text(found)))
        sys.stdout.flush()
        self._printed = line
