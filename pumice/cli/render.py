"""`pumice render`: all objects that the controller would create."""

import enum
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.api.fields import plain
from pumice.api.kinds import CRON_JOB, JOB, JOB_FLOW, JOB_TEMPLATE, WIRED_OWNERS, Kind, of_object
from pumice.api.meta import Raw
from pumice.cli import exits
from pumice.cli.files.manifests import Manifest, named, read
from pumice.cli.options import AdmissionConf, Files, PluginSettings, Settings, State
from pumice.cli.output import note, write_document, write_json_list

if TYPE_CHECKING:
    from pumice.cli.files.checking import ManifestChecker
    from pumice.plugins import PluginSettings as Chosen

EXAMPLES = (
    "pumice render job.yaml",
    "pumice render job.yaml -o json | jq '.items[] | select(.kind == \"Pod\")'",
    "pumice render job.yaml --set strict-upstream=true --set-plugins wait-image=registry.example/busybox:1",
)

_RENDERED = (JOB, *WIRED_OWNERS, JOB_FLOW, CRON_JOB)
REDACTED = "<redacted; --show-secrets shows it>"


class OutputFormat(enum.StrEnum):
    """Output forms of the objects."""

    YAML = "yaml"
    JSON = "json"


def render(
    files: Files,
    state: State = None,
    admission_conf: AdmissionConf = None,
    settings: Settings = None,
    set_plugins: PluginSettings = None,
    output: Annotated[
        OutputFormat, typer.Option("-o", "--output", help="Form of the objects.")
    ] = OutputFormat.YAML,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Write the values of Secrets, too.")
    ] = False,
) -> None:
    """Write all objects that a Job, JobFlow or CronJob leads to.

    After admission: PodGroup, Service, ConfigMaps, NetworkPolicy, Secrets, and each pod with the edits
    of all plugins. A Job without a uid gets one of zeros, so that the same Job gives the same objects. Other objects in
    the files serve as state, for example Queues. JSON is one List. With `--set strict-upstream=true`
    plugins wire as Volcano's do, too.

    An Indexed Job, a JobSet or a LeaderWorkerSet becomes what its plugins want and its pods as they wire them. A JobFlow
    becomes its Jobs, made from the JobTemplates in the files or in --state, and what these become. A CronJob
    becomes the Job of its next run, and what that becomes; a CronJob without a time zone is taken to be in UTC.

    Exit code 1: a Job is refused; nothing is written then.
    """
    from pumice.cli.files.checking import ManifestChecker, read_groups, read_settings

    groups = read_groups(admission_conf)
    chosen = read_settings(settings)
    wiring = _wiring(chosen.strict_upstream, set_plugins)
    manifests = named(read(files))
    if not any(of_object(each.object) in _RENDERED for each in manifests):
        raise exits.UserError(f"there is no Job in {', '.join(files)}, and no JobFlow or CronJob")
    existing = read(state or (), may_be_empty=True)
    checker = ManifestChecker(chosen, existing, manifests, groups=groups)
    rendered = _rendered(checker, manifests, existing, wiring)
    shown = (each if show_secrets else _redacted(each) for each in rendered)
    if output is OutputFormat.JSON:
        write_json_list(shown, header={"apiVersion": "v1", "kind": "List"})
    else:
        from pumice.cli.output import dump

        for each in shown:
            write_document(dump([each]).removesuffix("\n"))


def _rendered(
    checker: "ManifestChecker",
    manifests: list[Manifest],
    existing: list[Manifest],
    wiring: "Chosen",
) -> list[Raw]:
    """What Jobs become, then the Jobs of JobFlows and CronJobs and what these become.

    Raises:
        typer.Exit: One of them is refused.
    """
    import time

    from pumice.cli.workflows import jobs_of, next_of

    def of_kind(*kinds: Kind) -> list[Manifest]:
        return [each for each in manifests if of_object(each.object) in kinds]

    known = [*existing, *manifests]
    templates = [each for each in known if of_object(each.object) == JOB_TEMPLATE]
    jobs = of_kind(JOB, *WIRED_OWNERS)
    admitted = _admitted(checker, jobs)
    of_flows = [jobs_of(each, templates, checker) for each in of_kind(JOB_FLOW)]
    of_cron_jobs = [next_of(each, checker, time.time()) for each in of_kind(CRON_JOB)]
    made = [each for each in (*chain(*filter(None, of_flows)), *of_cron_jobs) if each is not None]
    further = _admitted(checker, made)
    is_refused = len(admitted) < len(jobs) or len(further) < len(made)
    if is_refused or None in of_flows or None in of_cron_jobs:
        exits.finish(exits.REFUSED)
    priorities = _priorities(known)
    rendered = [one for job in admitted for one in _objects(job, priorities, wiring)]
    for job in further:
        rendered += [job, *_objects(job, priorities, wiring)]
    return rendered


def _admitted(checker: "ManifestChecker", jobs: list[Manifest]) -> list[Raw]:
    """The Jobs with all defaults applied; errors and warnings are printed."""
    from pumice.cli.workflows import admitted

    found = [admitted(each, checker) for each in jobs]
    return [each for each in found if each is not None]


def _priorities(manifests: list[Manifest]) -> dict[str, int]:
    from pumice.api.kinds import PRIORITY_CLASS
    from pumice.api.nodes import PriorityClass, values_of
    from pumice.cli.files.manifests import decode

    classes = [
        decode(each, PriorityClass)
        for each in manifests
        if of_object(each.object) == PRIORITY_CLASS
    ]
    return values_of(classes)


def _wiring(strict_upstream: bool, assignments: list[str] | None) -> "Chosen":
    """Settings of plugins; `strict-upstream` is that of admission unless it is set for plugins."""
    from pumice.cli.files.checking import read_plugin_settings

    follows = ["strict-upstream=true"] if strict_upstream else []
    return read_plugin_settings([*follows, *(assignments or ())], "--set-plugins")


def _objects(job: Raw, priorities: dict[str, int], settings: "Chosen") -> list[Raw]:
    from pumice.cli.files.checking import registry
    from pumice.controller.jobs.subject import UnusableError
    from pumice.controller.objects import UnknownKindError
    from pumice.controller.render import render as objects_of
    from pumice.controller.render import render_owner
    from pumice.plugins import PluginError
    from pumice.plugins.other_owners import RequestError

    kind = of_object(job)
    try:
        if kind is not None and kind in WIRED_OWNERS:
            return render_owner(kind, job, registry(), settings)
        return objects_of(job, registry(), priorities, settings)
    except (UnusableError, PluginError, UnknownKindError, RequestError) as error:
        name = f"{job['kind']}/{job['metadata']['namespace']}/{job['metadata']['name']}"
        note(plain(f"{name}: {error}"))
        exits.finish(exits.REFUSED)


def _redacted(made: Raw) -> Raw:
    if made.get("kind") != "Secret":
        return made
    hidden = {
        key: dict.fromkeys(made[key] or {}, REDACTED)
        for key in ("data", "stringData")
        if key in made
    }
    return made | hidden
