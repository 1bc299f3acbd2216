"""`pumice simulate --live`: a Job that is not submitted, in a cluster as it is now."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from pumice.api import keys, kinds
from pumice.api.fields import plain
from pumice.api.meta import ObjectMeta, Raw
from pumice.api.nodes import with_system_classes
from pumice.api.queues import Queue
from pumice.api.raw import key_in
from pumice.cli import exits
from pumice.cli.exits import UserError
from pumice.cli.files.checking import ManifestChecker
from pumice.cli.files.manifests import Manifest, Source, named, read
from pumice.cli.live.forecasts import LIMIT, NO_RIGHTS, read_forecast_cluster
from pumice.cli.live.observed import ReadableCluster, observe
from pumice.cli.live.sessions import run
from pumice.cli.options import ClusterOptions
from pumice.cli.output import Format, note, write, write_json
from pumice.scheduler import Config
from pumice.scheduler.results import CycleFailedError
from pumice.scheduler.simulate import UnreadableObjectError
from pumice.webhook.rules.references import JOB as REFERENCES
from pumice.webhook.rules.rule import RuleSettings

_NO_CLASS = REFERENCES.priority.code


def try_job(file: Path, cluster: ClusterOptions, config: Config, output: Format) -> NoReturn:
    """Say whether the Job of a file would fit now, when it would start, and with how many pods it would start now.

    Raises:
        UserError: The file is not one Job, or the cluster cannot be read.
    """
    found = [each for each in named(read([file])) if kinds.of_object(each.object) == kinds.JOB]
    if len(found) != 1:
        raise UserError(f"--live {file}: expected one Job, found {len(found)}")
    answer = run(_tried(found[0], cluster, config))
    if output is Format.JSON:
        write_json(answer)
    else:
        write(plain(f"Job {answer['job']}: {answer['forecast']['message']}"))
        write(
            f"{answer['podsNow']} of {answer['replicas']} pods would run now if minAvailable were 1"
        )
    exits.finish(exits.FINE if answer["fitsNow"] else exits.REFUSED)


async def _tried(manifest: Manifest, cluster: ClusterOptions, config: Config) -> dict[str, Any]:
    async with cluster.connect() as client:
        namespace = manifest.object["metadata"].get("namespace") or client.connection.namespace
        seen = await observe(client, namespace, events=False, whole=True)
        if not seen.sees_cluster:
            raise UserError(NO_RIGHTS)
        known = await read_forecast_cluster(client, seen, config)
    if seen.forbidden:
        note(f"this lacks {', '.join(seen.forbidden)}, which you may not read")
    there = {each.metadata.name for each in seen.objects.namespaces}
    if namespace not in there and kinds.NAMESPACE.plural not in seen.forbidden:
        raise UserError(f"there is no namespace {namespace}; create it, or name another one")
    job = _admitted(manifest, str(namespace), seen)
    name = job["metadata"]["name"]
    if f"{namespace}/{name}" in map(key_in, known.jobs):
        raise UserError(
            f"Job {namespace}/{name} exists; `pumice explain job {name} --forecast` says when it starts"
        )
    if (
        scheduler := job["spec"].get("schedulerName") or keys.DEFAULT_SCHEDULER
    ) not in known.schedulers:
        names = ", ".join(known.schedulers)
        raise UserError(
            f"spec.schedulerName is {scheduler}; what it does is not known here, only that of {names} is"
        )
    if remark := replace(known, jobs=[*known.jobs, job]).remark():
        note(plain(remark))
    try:
        told, pods = known.trial(job, time.process_time, LIMIT)
    except (UnreadableObjectError, CycleFailedError) as error:
        raise UserError(str(error)) from None
    return {
        "job": f"{namespace}/{name}",
        "fitsNow": told.seconds == 0.0,
        "forecast": msgspec.to_builtins(told),
        "podsNow": pods,
        "replicas": sum(task.get("replicas", 1) for task in job["spec"]["tasks"]),
    }


def _admitted(manifest: Manifest, namespace: str, seen: ReadableCluster) -> Raw:
    """The Job as admission of the cluster lets it in."""
    if not seen.sees_queues:  # then the Job's is taken to be one
        name = (manifest.object.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE
        if name not in {each.metadata.name for each in seen.objects.queues}:
            seen.objects.queues.append(Queue(metadata=ObjectMeta(name=str(name))))
    given = manifest.object | {"metadata": manifest.object["metadata"] | {"namespace": namespace}}
    placed = Manifest(given, manifest.source)
    classes = seen.objects.priority_classes
    if kinds.PRIORITY_CLASS.plural not in seen.forbidden:
        classes = with_system_classes(classes)
    others = [
        Manifest(msgspec.to_builtins(each) | kind.type_meta, Source("cluster"))
        for kind, objects in ((kinds.QUEUE, seen.objects.queues), (kinds.PRIORITY_CLASS, classes))
        for each in objects
    ]
    verdict = ManifestChecker(RuleSettings(), [], [placed, *others]).judge(placed)
    # The API server refuses pods with a PriorityClass that does not exist.
    missing = [each for each in verdict.warnings if each.code == _NO_CLASS]
    for error in (*verdict.errors, *missing):
        note(plain(f"{placed.identity} is refused: {error}"))
    if not verdict.allowed or missing:
        exits.finish(exits.REFUSED)
    admitted: Raw = verdict.patched
    return admitted
