"""The Job and the pods that rows of the case tables tell of in few words."""

from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.pods import Pod
from tests.kit.builders import job, task

Raw = dict[str, Any]

NAME, UID = "job1", "u1"
ENDED = "2026-01-01T00:00:00Z"


def a_job(row: Raw, **fields: Any) -> Raw:
    """The Job of a row: `tasks` by name, as replicas or as fields of the task; `job` are fields of its spec."""
    tasks = [
        task(name, **({"replicas": given} if isinstance(given, int) else given))
        for name, given in row["tasks"].items()
    ]
    status = {"version": row["version"]} if row.get("version") else None
    whole = row.get("job", {}) | fields
    return job(NAME, tasks, uid=UID, status=status, **whole)


def a_pod(name: str, given: Raw | None) -> Raw:
    """A pod of job1; its name says its task, and what a row does not say is as the controller writes it."""
    given = given or {}
    annotations = {
        keys.JOB_NAME: NAME,
        keys.JOB_VERSION: given.get("version", "0"),
        keys.TASK_SPEC: given.get("task", name.removeprefix(f"{NAME}-").rpartition("-")[0]),
        keys.OUT_OF_SYNC: "true" if given.get("marked") else None,
    }
    labels = {keys.JOB_NAME: given.get("label", NAME), keys.PARTITION_ID: given.get("partition")}
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": given.get("owner_kind", "Job"),
        "name": NAME,
        "uid": given.get("owner", UID),
        "controller": True,
    }
    pod: Raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": ENDED,
            "labels": _said(labels),
            "annotations": _said(annotations),
            "ownerReferences": [owner] if owner["uid"] else [],
        },
        "spec": {"containers": [{"name": "main", "image": "busybox:1.36"}]},
        "status": _status(given) | given.get("status", {}),
    }
    if given.get("leaving"):
        pod["metadata"]["deletionTimestamp"] = ENDED
    pod["metadata"] |= given.get("metadata", {})
    return pod


def pods(row: Raw, key: str = "pods") -> tuple[Pod, ...]:
    """The pods that stand under a key of a row."""
    return tuple(
        msgspec.convert(a_pod(name, given), Pod) for name, given in row.get(key, {}).items()
    )


def _status(given: Raw) -> Raw:
    phase = given.get("phase", "Running")
    containers: list[Raw] = [
        {"name": f"c{at}", "state": {"terminated": {"exitCode": code, "finishedAt": ENDED}}}
        for at, code in enumerate(given.get("exits", ()))
    ]
    containers += _restarted(given.get("restarts", ()))
    if not containers:
        containers = [{"name": "main"}]
    ready = given.get("ready", phase == "Running")
    return {
        "phase": phase,
        "containerStatuses": [each | {"ready": ready} for each in containers],
        "initContainerStatuses": _restarted(given.get("init_restarts", ())),
    }


def _restarted(counts: Any) -> list[Raw]:
    return [{"name": f"r{at}", "restartCount": count} for at, count in enumerate(counts)]


def _said(texts: dict[str, str | None]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if text is not None}
