"""JobFlows on the command line: Jobs for `render` and `lint`, and the state of the flows for `explain`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pumice.api.fields import FieldError, plain
from pumice.cli.files.manifests import Manifest, Raw
from pumice.cli.output import note

if TYPE_CHECKING:
    from pumice.cli.files.checking import ManifestChecker
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.client import Client
    from pumice.controller.jobflows import FlowEntry, Flows

__all__ = ["admitted", "doubts", "explanation", "jobs_of"]

_NOT_YET = "its Job is not created yet; is `pumice controller` running?"


def jobs_of(
    manifest: Manifest, templates: Sequence[Manifest], checker: "ManifestChecker"
) -> list[Manifest] | None:
    """The Jobs that a JobFlow creates, before their admission; None if something is refused or missing, which is reported.

    Args:
        manifest: The JobFlow.
        templates: The existing JobTemplates.
        checker: Checks the JobFlow and the templates that it names.
    """
    job_flow = admitted(manifest, checker)
    if job_flow is None:
        return None
    present = {each.name: each for each in templates if each.namespace == manifest.namespace}
    names = list(dict.fromkeys(each["name"] for each in _flows(job_flow)))
    for name in names:
        if name not in present:
            note(plain(f"{manifest.identity}: flow {name}: there is no JobTemplate {name}"))
    found = {name: admitted(present[name], checker) for name in names if name in present}
    usable = {name: each for name, each in found.items() if each is not None}
    if len(usable) < len(names):
        return None
    return [Manifest(job, manifest.source) for _, job in _jobs(job_flow, usable)]


def doubts(
    manifest: Manifest, job_flow: Raw, templates: Mapping[str, Raw], checker: "ManifestChecker"
) -> list[FieldError]:
    """Problems of the Jobs of a JobFlow, as far as their templates are known.

    Args:
        manifest: The JobFlow.
        job_flow: The JobFlow after admission.
        templates: JobTemplates of its namespace by name, after admission.
        checker: Checks the Jobs.
    """
    return [
        FieldError(path, f"its Job would be refused: {error.path}: {error.message}", error.code)
        for path, job in _jobs(job_flow, templates)
        for error in checker.judge(Manifest(job, manifest.source)).errors
    ]


def _flows(job_flow: Raw) -> list[Raw]:
    return (job_flow.get("spec") or {}).get("flows") or []


def _jobs(job_flow: Raw, templates: Mapping[str, Raw]) -> Iterator[tuple[str, Raw]]:
    """The Jobs of the flows whose templates are known, each with the path of its flow."""
    from pumice.api.jobflows import job_name
    from pumice.api.meta import ObjectMeta
    from pumice.controller.jobflows import job_of
    from pumice.controller.render import NO_UID

    meta = job_flow["metadata"]
    owner = ObjectMeta(
        name=meta["name"], namespace=meta.get("namespace", ""), uid=meta.get("uid") or NO_UID
    )
    last = {flow["name"]: (number, flow) for number, flow in enumerate(_flows(job_flow))}
    for name, (number, flow) in last.items():
        if name in templates:
            job = job_of(owner, job_name(owner.name, name), flow, templates[name])
            yield f"spec.flows[{number}]", job


def admitted(manifest: Manifest, checker: "ManifestChecker") -> Raw | None:
    """An object after admission; errors and warnings are reported."""
    found = checker.judge(manifest)
    for warning in found.warnings:
        note(plain(f"{manifest.identity}: warning: {warning}"))
    for error in found.errors:
        note(plain(f"{manifest.identity} is refused: {error}"))
    return found.patched if found.allowed else None


def _why(entry: "FlowEntry", flows: "Flows") -> str:
    """Why a flow has no Job; for a retry, which one it is."""
    told = entry.wait.message if entry.wait else _NOT_YET if entry.is_due else ""
    retry = entry.attempt.retry
    if not retry:
        return told
    number = f"retry {retry} of {max(retry, flows.options.retries)}"
    return f"{number} {told}" if entry.wait else f"{number}: {told}" if told else number


async def explanation(client: "Client", job_flow: Raw) -> "tuple[ReadableCluster, dict[str, Any]]":
    """Each flow with its Job, or what it waits for; computed from what the user may read.

    Raises:
        Forbidden: The user may not read Jobs.
    """
    from pumice.api.kinds import EVENT, JOB, JOB_FLOW, JOB_TEMPLATE
    from pumice.cli.live.explanations import events_about
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.errors import Forbidden
    from pumice.controller.jobflows import read

    meta = job_flow["metadata"]
    namespace = meta["namespace"]
    seen = ReadableCluster(namespace)
    listed = {}
    for kind in (JOB, JOB_TEMPLATE, EVENT):
        try:
            listed[kind] = await client.list(kind, namespace)
        except Forbidden:
            if kind == JOB:
                raise
            seen.forbidden.append(kind.plural)
    seen.versions = [
        (kind, namespace, found["metadata"]["resourceVersion"])
        for kind, found in listed.items()
        if kind != EVENT
    ]
    seen.versions.append((JOB_FLOW, namespace, meta["resourceVersion"]))
    templates = {each["name"] for each in _flows(job_flow)}
    if JOB_TEMPLATE in listed:
        templates = {each["metadata"]["name"] for each in listed[JOB_TEMPLATE]["items"]}
    flows = read(job_flow, listed[JOB]["items"], templates)
    done = sum(each.phase == "Completed" for each in flows.entries)
    message = (
        f"JobFlow {namespace}/{meta['name']} is {flows.phase}:"
        f" {done} of {len(flows.entries)} Jobs have completed"
    )
    return seen, {
        "jobFlow": f"{namespace}/{meta['name']}",
        "phase": flows.phase,
        "waiting": flows.phase == "Pending",
        "message": message,
        "flows": [
            {
                "name": each.flow.name,
                "job": each.job_name,
                "phase": each.phase or "",
                "reason": each.wait.reason if each.wait else "",
                "message": _why(each, flows),
            }
            for each in flows.entries
        ],
        "events": events_about(listed.get(EVENT, {}).get("items", ()), {meta["uid"]}),
        "notAllowed": seen.forbidden,
    }
