"""`pumice lint`: admission of manifests, offline.

Kinds of other projects may exist, because their CRDs may be installed. So a kind is refused only if its group is one of
Volcano's, nearly one, or one of Kubernetes' own groups, whose kinds are fixed.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.api.fields import FieldError, did_you_mean, plain
from pumice.api.kinds import (
    CRON_JOB,
    INDEXED_JOB,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    POD,
    VOLCANO,
    Kind,
    of_object,
)
from pumice.api.meta import Raw
from pumice.cli import exits, lean
from pumice.cli.files.kustomizations import build_first, rendered
from pumice.cli.files.manifests import (
    Manifest,
    ManifestReading,
    ReadProblem,
    is_folder,
    read,
    read_all,
)
from pumice.cli.lint_output import (
    LintCounts,
    LintFinding,
    LintFormat,
    write_counts,
    write_github,
    write_results_json,
    write_text,
)
from pumice.cli.options import AdmissionConf, Files, Settings, State, output_option
from pumice.cli.output import note

if TYPE_CHECKING:
    from pumice.cli.files.checking import ManifestChecker
    from pumice.cli.files.positions import Positions
    from pumice.webhook.offline import ManifestResult
    from pumice.webhook.rules.resource_groups import ResourceGroups
    from pumice.webhook.rules.rule import RuleSettings

EXAMPLES = (
    "pumice lint job.yaml",
    "pumice lint manifests/ --strict --quiet",
    "helm template chart/ | pumice lint -",
    "pumice lint --render overlays/production --state queues.yaml -o json",
    "pumice lint job.yaml --set strict-upstream=true --set rule.JOB-MIN-SUCCESS=enforce",
)

_Output = Annotated[
    LintFormat,
    output_option(
        "Form of the result; github prints workflow commands, which GitHub shows at the lines of a pull request.",
    ),
]
_Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only errors and warnings, one line each.")
]
_Strict = Annotated[bool, typer.Option("--strict", help="Exit with code 1 for warnings, too.")]
_Changes = Annotated[
    bool, typer.Option("--changes", help="Show each field that admission adds or changes.")
]
_SkipOthers = Annotated[
    bool,
    typer.Option(
        "--skip-others",
        help="Skip named files that hold no manifests, as in a directory, instead of failing.",
    ),
]
_Render = Annotated[
    bool,
    typer.Option(
        "--render",
        help="Build the Kustomization, or render the Helm chart, of each directory, and validate the result; by "
        "kustomize, kubectl or helm, whichever is installed.",
    ),
]


def lint(
    files: Files,
    state: State = None,
    admission_conf: AdmissionConf = None,
    settings: Settings = None,
    output: _Output = LintFormat.TEXT,
    quiet: _Quiet = False,
    strict: _Strict = False,
    changes: _Changes = False,
    skip_others: _SkipOthers = False,
    render: _Render = False,
) -> None:
    """Validate manifests offline and report every problem.

    Prints what the API server and its webhooks refuse and warn about, with file and line, and with --changes what
    they change. Objects in the files may refer to each other, for example a Job to a Queue. Objects in --state
    exist already: a manifest with the same name is validated as an update. The queues `root` and `default` always
    exist; if no queue is given, a reference to another queue is a warning.

    Skipped are kinds of other API groups, and in a directory hidden folders, templates of Helm charts, patches that
    a Kustomization lists, and files that are no manifests. `pumice rules CODE` explains the code at the end of a line.

    Exit code 1: an object is refused. Exit code 2: a file cannot be read, where results of the others are printed,
    or there is only a Helm chart or a Kustomization, which must be rendered first, for example by --render.
    """
    from pumice.cli.files.checking import read_groups, read_settings
    from pumice.cli.files.positions import Positions

    groups = read_groups(admission_conf)
    chosen = read_settings(settings)
    if "-" in files and state and "-" in state:
        raise exits.UserError("stdin (-) can be read only once")
    report = _say_nothing if quiet else note
    with lean.not_collecting():
        reading = _read_files(files, render=render, skip_others=skip_others, report=report)
        positions = Positions(reading.texts)
        judged = _judged(reading.manifests, report)
        if not (judged or reading.problems or skip_others):
            reading.problems += _unrendered(reading)
        existing = read(state or (), may_be_empty=True)
        counts = LintCounts()
        findings = counts.counting(
            _with_duplicates(_findings(judged, existing, chosen, groups), positions)
        )
        if output is LintFormat.GITHUB:
            write_github(findings, reading.problems, positions)
        elif reading.problems and not judged:
            pass  # there is no result to show
        elif output is LintFormat.JSON:
            shown = (each for each in findings if each.has_problems or not quiet)
            write_results_json(shown, positions, with_changes=changes)
        else:
            write_text(findings, positions, quiet=quiet, with_changes=changes)
            if not quiet:
                write_counts(counts, strict=strict)
    if reading.problems:
        sys.stdout.flush()
        raise exits.UserError(*reading.problems)
    failed = counts.refused or (strict and counts.warnings)
    exits.finish(exits.REFUSED if failed else exits.FINE)


def _read_files(
    files: list[str], *, render: bool, skip_others: bool, report: Callable[[str], None]
) -> ManifestReading:
    """Read files, and what directories render to if that is wanted."""
    folders = [each for each in files if is_folder(each)] if render else []
    if render and not folders:
        raise exits.UserError(f"--render: expected a directory, found {', '.join(files)}")
    others = [each for each in files if each not in folders]
    made = dict(map(rendered, folders))
    return read_all(others, skip_others=skip_others, report=report, given=made)


def _say_nothing(_: str) -> None:
    """Replacement for the note about a skipped object."""


def _findings(
    judged: list[Manifest],
    state: list[Manifest],
    settings: "RuleSettings",
    groups: "ResourceGroups",
) -> Iterator[LintFinding]:
    """The result of admission for each manifest, validated when it is taken."""
    from pumice.cli.files.checking import ManifestChecker, placed

    others = [each for each in judged if of_object(each.object)]
    checker = ManifestChecker(settings, state, others, groups=groups)
    templates: list[tuple[Manifest, ManifestResult]] = []
    if any(of_object(each.object) == JOB_FLOW for each in others):
        templates = [
            (each, checker.judge(each)) for each in others if of_object(each.object) == JOB_TEMPLATE
        ]
    for each in judged:
        found = _of_no_kind(each) or checker.judge(each)
        found = _with_jobs(each, found, templates, checker)
        yield LintFinding(each, placed(each), found, _next_runs(found))


def _with_duplicates(
    findings: Iterable[LintFinding], positions: "Positions"
) -> Iterator[LintFinding]:
    """Warn about an object that the files have twice, at its second place."""
    first: dict[tuple[str, str], Manifest] = {}
    for finding in findings:
        manifest = finding.manifest
        key = str(manifest.object["apiVersion"]).rpartition("/")[0], manifest.identity
        other = first.setdefault(key, manifest)
        if other is not manifest and _is_named(manifest) and not _same_place(other, manifest):
            place = f"{other.source.file}:{positions.line(other.source, 'metadata.name')}"
            message = (
                f"{manifest.identity} is also at {place}; if both are applied, the last one stays"
            )
            problem = FieldError("metadata.name", message, "SCHEMA-TWICE")
            result = replace(finding.result, warnings=(*finding.result.warnings, problem))
            finding = replace(finding, result=result)
        yield finding


def _is_named(manifest: Manifest) -> bool:
    metadata = manifest.object.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("name"))


def _same_place(one: Manifest, other: Manifest) -> bool:
    """True if two paths are the same file."""
    a, b = one.source, other.source
    if (a.document, a.item) != (b.document, b.item):
        return False
    return a.file == b.file or os.path.realpath(a.file) == os.path.realpath(b.file)


def _judged(manifests: list[Manifest], report: Callable[[str], None]) -> list[Manifest]:
    """The manifests to validate, and those of unknown kinds; other objects are reported as skipped."""
    judged = []
    others: dict[tuple[str, str, str], list[str]] = {}
    for manifest in manifests:
        raw = manifest.object
        if of_object(raw) in (*VOLCANO, POD) or unknown_kind(raw) or _wants_plugins(manifest):
            judged.append(manifest)
            continue
        if how := _build_first(manifest):
            report(plain(f"skipped {manifest.source.file}: a Kustomization{how}"))
            continue
        key = manifest.source.file, str(raw["apiVersion"]), str(raw["kind"])
        others.setdefault(key, []).append(manifest.identity)
    for (_, version, _), names in others.items():
        more = f" (and {len(names) - 1} more like it)" if len(names) > 1 else ""
        report(plain(f"skipped {names[0]}{more}: {version} is not validated"))
    return judged


def _unrendered(reading: ManifestReading) -> list[ReadProblem]:
    """The problem that there are only sources of manifests, such as a Helm chart; empty if there are none of these."""
    built = [
        f"{each.source.file}: a Kustomization{how}"
        for each in reading.manifests
        if (how := _build_first(each))
    ]
    found = [*reading.unrendered, *built]
    more = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
    return [ReadProblem(plain(f"no object was validated: {each}{more}")) for each in found[:1]]


def _of_no_kind(manifest: Manifest) -> "ManifestResult | None":
    """The result for an object whose kind is misspelt; None for other kinds."""
    from pumice.webhook.offline import ManifestResult

    problem = unknown_kind(manifest.object)
    return ManifestResult((problem,), (), manifest.object) if problem else None


def _build_first(manifest: Manifest) -> str:
    """The command that builds a Kustomization, and validates the result; empty for other objects."""
    if not str(manifest.object["apiVersion"]).startswith("kustomize.config.k8s.io/"):
        return ""
    return f"; {build_first(manifest.source.file)}"


def _wants_plugins(manifest: Manifest) -> bool:
    """True for an object of another controller whose pods name plugins."""
    import msgspec

    from pumice.plugins.other_owners import OWNERS

    kind = of_object(manifest.object)
    if kind is None or kind not in OWNERS:
        return False
    try:
        return msgspec.convert(manifest.object, OWNERS[kind]).wants_plugins
    except msgspec.ValidationError:
        return True  # the problem is reported during validation


def _with_jobs(
    manifest: Manifest,
    found: "ManifestResult",
    templates: list[tuple[Manifest, "ManifestResult"]],
    checker: "ManifestChecker",
) -> "ManifestResult":
    """The result, with the problems of an admitted JobFlow's Jobs as far as its templates were validated, too."""
    if not found.allowed or of_object(found.patched) != JOB_FLOW:
        return found
    if not found.patched["metadata"].get("name"):
        return found  # the API server will name it
    from pumice.cli.workflows import doubts

    admitted = {
        each.name: judged.patched
        for each, judged in templates
        if judged.allowed and each.namespace == manifest.namespace
    }
    more = doubts(manifest, found.patched, admitted, checker)
    return replace(found, warnings=(*found.warnings, *more))


def _next_runs(found: "ManifestResult") -> str:
    """The next runs of an admitted CronJob; empty for other kinds."""
    import time

    if not found.allowed or of_object(found.patched) != CRON_JOB:
        return ""
    from pumice.cli.workflows import next_runs

    return next_runs(found.patched, time.time())


_JUDGED = (*VOLCANO, POD, INDEXED_JOB)
"""Kinds that may have been meant."""

_GROUPS = frozenset(each.group for each in VOLCANO)
_HEADS = [each.partition(".")[0] for each in sorted(_GROUPS)]
"""`batch`, `scheduling` and other first parts of groups `*.volcano.sh`."""

_FIXED_GROUPS = ("", "core", "apps", "batch")
"""Kubernetes' own groups, and common misspellings of them; no CRD can add a kind to them."""

_THERE = ("v1 Pod", "batch/v1 Job", "batch/v1 CronJob", "batch/v1beta1 CronJob")
"""The kinds of these groups that have a name of `_JUDGED`."""


def unknown_kind(manifest: Raw) -> FieldError | None:
    """The error for an object whose kind is misspelt, so that every API server refuses it; None for other kinds."""
    version, kind = str(manifest["apiVersion"]), str(manifest["kind"])
    if (version, kind) == (INDEXED_JOB.api_version, JOB.kind) and _has_tasks(manifest):
        message = f'a Job of "{version}" has no tasks (did you mean "{JOB.api_version}"?)'
        return FieldError("apiVersion", message, "SCHEMA-KIND")
    if of_object(manifest) is not None or not _is_slip(version, kind):
        return None
    spelt = f"{version} {kind}"
    here = [each for each in _JUDGED if each.api_version == version]
    meant = _named(kind) or [each for each in here if kind.endswith(each.kind)]
    if JOB in meant and _has_tasks(manifest):
        meant = [JOB]
    if meant:
        choices = [f"{each.api_version} {each.kind}" for each in meant]
        nearest = max(choices, key=lambda each: SequenceMatcher(None, each, spelt).ratio())
        hint = f' (did you mean "{nearest}"?)'
    elif here:
        hint = did_you_mean(kind, [each.kind for each in here])
    else:
        hint = did_you_mean(version, [each.api_version for each in VOLCANO])
    path = "kind" if here else "apiVersion"
    return FieldError(path, f'there is no kind "{spelt}"{hint}', "SCHEMA-KIND")


def _has_tasks(manifest: Raw) -> bool:
    """True if an object has tasks; of all kinds of Jobs only Volcano's have."""
    spec = manifest.get("spec")
    return isinstance(spec, dict) and "tasks" in spec


def _is_slip(version: str, kind: str) -> bool:
    """True if an unknown kind is in a group of Volcano's, nearly in one, or in a group whose kinds are fixed."""
    group, slash, _ = version.lower().rpartition("/")
    if not slash and "." in version:
        group = version.lower()  # without a version
    if group in _GROUPS:
        return True
    named = _named(kind)
    if group in _FIXED_GROUPS:
        return bool(named) and f"{version} {kind}" not in _THERE
    if not any(get_close_matches(label, ["volcano"], cutoff=0.7) for label in group.split(".")):
        return False
    # Volcano has further groups, such as nodeinfo.volcano.sh, with kinds of their own.
    return bool(named or get_close_matches(group.partition(".")[0], _HEADS, cutoff=0.75))


def _named(kind: str) -> list[Kind]:
    """Kinds with a name or plural, in any case."""
    return [each for each in _JUDGED if kind.lower() in (each.kind.lower(), each.plural)]
