"""`pumice lint`: admission of manifests, offline."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pumice.cli import exits
from pumice.cli.changes import changes
from pumice.cli.manifests import Manifest, read, read_all
from pumice.cli.options import AdmissionConf, Files, Output, Settings, State
from pumice.cli.output import Format, note, paint, write, write_json

if TYPE_CHECKING:
    from pumice.cli.checking import ManifestChecker
    from pumice.webhook.offline import ManifestResult

__all__ = ["EXAMPLES", "lint"]

DROPPED = frozenset({"SCHEMA-NULL", "SCHEMA-UNKNOWN"})
"""Codes of warnings that a field goes, which need not be told again as a change."""

EXAMPLES = (
    "pumice lint job.yaml",
    "kustomize build . | pumice lint - --state queues.yaml -o json",
    "pumice lint job.yaml --set strict-upstream=true --set rule.JOB-MIN-SUCCESS=enforce",
)


def lint(
    files: Files,
    state: State = None,
    admission_conf: AdmissionConf = None,
    settings: Settings = None,
    output: Output = Format.TEXT,
) -> None:
    """Judge manifests offline, all problems at once.

    Says what the API server and its webhooks would change, warn about and refuse. Objects in the files may refer to each other, a Job to a Queue for example. What --state holds
    exists already: a manifest of the same name is judged as its update. Queues `root` and `default`
    are there without being given; where no queue is given, naming another is a warning. Kinds of other groups are skipped, and so are hidden folders and files of a directory that
    are no manifests. `pumice rules CODE` explains the code at the end of a line.

    Exit code 1: something is refused; 2: something cannot be read, results of the rest are printed.
    """
    from pumice.api.kinds import of_object
    from pumice.cli.checking import ManifestChecker, placed, read_groups, read_settings

    groups = read_groups(admission_conf)
    chosen = read_settings(settings)
    if "-" in files and state and "-" in state:
        raise exits.UserError("stdin (-) can be read only once")
    with _uncollected():
        reading = read_all(files)
        judged = _judged(reading.manifests)
        others = [each for each in judged if of_object(each.object)]
        checker = ManifestChecker(
            chosen, read(state or (), may_be_empty=True), others, groups=groups
        )
        findings = [(each, _of_no_kind(each) or checker.judge(each)) for each in judged]
        findings = [(each, _with_jobs(each, found, findings, checker)) for each, found in findings]
        coming = {each.identity: runs for each, found in findings if (runs := _next_runs(found))}
    if reading.problems and not reading.manifests:
        pass  # there is no result to show
    elif output is Format.JSON:
        write_json([_as_json(each, found, coming.get(each.identity)) for each, found in findings])
    else:
        for each, found in findings:
            _write_text(each, placed(each), found)
            if each.identity in coming:
                write(f"  next runs: {coming[each.identity]}")
        _write_sum([found for _, found in findings])
    if reading.problems:
        sys.stdout.flush()
        raise exits.UserError(*reading.problems)
    refused = any(not found.allowed for _, found in findings)
    exits.finish(exits.REFUSED if refused else exits.FINE)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Leave the collector of cycles out: manifests have none, and looking for them costs a fifth of the time."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()


def _judged(manifests: list[Manifest]) -> list[Manifest]:
    """Those manifests that admission judges, or that no API server has a kind for; of the others it is said that they are skipped."""
    from pumice.api.fields import plain
    from pumice.api.kinds import JOB, POD, VOLCANO, of_object
    from pumice.cli.unknown_kinds import has_tasks, unknown_kind

    judged = []
    for manifest in manifests:
        raw = manifest.object
        if of_object(raw) in (*VOLCANO, POD) or unknown_kind(raw) or _wants_plugins(manifest):
            judged.append(manifest)
            continue
        is_meant = raw["kind"] == JOB.kind and has_tasks(raw)
        hint = f' (did you mean "{JOB.api_version}"?)' if is_meant else ""
        note(plain(f"skipped {manifest.identity}: {raw['apiVersion']} is not judged{hint}"))
    return judged


def _of_no_kind(manifest: Manifest) -> "ManifestResult | None":
    """Refuse a kind that no API server has; None for one that there is."""
    from pumice.cli.unknown_kinds import unknown_kind
    from pumice.webhook.offline import ManifestResult

    problem = unknown_kind(manifest.object)
    return ManifestResult((problem,), (), manifest.object) if problem else None


def _wants_plugins(manifest: Manifest) -> bool:
    """Whether it is an object of another controller whose pods name plugins."""
    import msgspec

    from pumice.api.kinds import of_object
    from pumice.plugins.native import OWNERS

    kind = of_object(manifest.object)
    if kind is None or kind not in OWNERS:
        return False
    try:
        return msgspec.convert(manifest.object, OWNERS[kind]).wants_plugins
    except msgspec.ValidationError:
        return True  # which is told when it is judged


def _with_jobs(
    manifest: Manifest,
    found: "ManifestResult",
    findings: list[tuple[Manifest, "ManifestResult"]],
    checker: "ManifestChecker",
) -> "ManifestResult":
    """What was found, and of an admitted JobFlow what is wrong with its Jobs, as far as its templates were judged, too."""
    from pumice.api.kinds import JOB_FLOW, JOB_TEMPLATE, of_object

    if not found.allowed or of_object(found.patched) != JOB_FLOW:
        return found
    if not found.patched["metadata"].get("name"):
        return found  # the API server will name it
    from dataclasses import replace

    from pumice.cli.flows import doubts

    templates = {
        each.name: judged.patched
        for each, judged in findings
        if judged.allowed
        and of_object(each.object) == JOB_TEMPLATE
        and each.namespace == manifest.namespace
    }
    more = doubts(manifest, found.patched, templates, checker)
    return replace(found, warnings=(*found.warnings, *more))


def _next_runs(found: "ManifestResult") -> str:
    """The next runs of an admitted CronJob; empty for other kinds."""
    import time

    from pumice.api.kinds import CRON_JOB, of_object

    if not found.allowed or of_object(found.patched) != CRON_JOB:
        return ""
    from pumice.cli.crons import next_runs

    return next_runs(found.patched, time.time())


def _as_json(manifest: Manifest, found: "ManifestResult", runs: str | None) -> dict[str, Any]:
    coming = {} if runs is None else {"nextRuns": runs}
    return coming | {
        "object": manifest.identity,
        "allowed": found.allowed,
        "errors": [
            {"code": error.code, "path": error.path, "message": error.message}
            for error in found.errors
        ],
        "warnings": [str(warning) for warning in found.warnings],
        "patched": found.patched,
    }


def _write_text(manifest: Manifest, before: dict[str, Any], found: "ManifestResult") -> None:
    from pumice.api.fields import plain

    word = paint("admitted", "green") if found.allowed else paint("refused", "red")
    write(f"{paint(plain(manifest.identity), 'bold')}: {word}  ({plain(str(manifest.source))})")
    for error in found.errors:
        write(f"  {paint('error', 'red')}    {error}")
    for warning in found.warnings:
        write(f"  {paint('warning', 'yellow')}  {warning}")
    if found.allowed:
        told = {warning.path for warning in found.warnings if warning.code in DROPPED}
        for change in changes(before, found.patched):
            if change.path not in told:
                write(f"  {paint('change', 'blue')}   {change}")


def _write_sum(findings: list["ManifestResult"]) -> None:
    refused = sum(not found.allowed for found in findings)
    count = f"{len(findings)} object{'' if len(findings) == 1 else 's'}"
    write(f"{count}: {len(findings) - refused} admitted, {refused} refused")
