"""Offline admission: rules, settings and plugins for the offline verbs."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from pumice.api import kinds
from pumice.api.meta import Raw
from pumice.api.raw import object_in
from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.cli.exits import UserError
from pumice.cli.files.contents import read_bytes
from pumice.cli.files.manifests import Manifest
from pumice.cli.output import note

if TYPE_CHECKING:
    from pumice.plugins import PluginSettings, Registry
    from pumice.webhook.admission import Admission
    from pumice.webhook.offline import ManifestResult
    from pumice.webhook.rules.resource_groups import ResourceGroups
    from pumice.webhook.rules.rule import RuleSettings
    from pumice.webhook.view import Snapshot

_TOLD, _LONGEST = 5, 400
"""Maximum number of a Job's problems in its status, and the maximum length of each; `pumice lint` shows all of them."""


@cache
def registry() -> "Registry":
    """The job plugins, those of installed packages included.

    Raises:
        UserError: An installed plugin is broken.
    """
    from pumice.plugins import PluginError, builtin

    try:
        return builtin().with_entry_points()
    except PluginError as error:
        raise UserError(str(error)) from None


def read_settings(assignments: Sequence[str] | None) -> "RuleSettings":
    """Settings of admission from `--set NAME=VALUE`.

    Raises:
        UserError: There is no such setting or it has no such value.
    """
    from pumice.webhook.rules.rule import RuleSettings

    if not assignments:
        return RuleSettings()
    from pumice.webhook.settings import AdmissionSettings

    try:
        return AdmissionSettings.from_assignments(assignments).plain()
    except SettingError as error:
        raise UserError(*(f"--set: {each}" for each in error.problems)) from None


def read_plugin_settings(assignments: Sequence[str] | None, flag: str) -> "PluginSettings":
    """Settings of job plugins from `NAME=VALUE` texts.

    Raises:
        UserError: There is no such setting or it has no such value.
    """
    from pumice.plugins import PluginSettings

    try:
        chosen = PluginSettings.from_assignments(assignments or ())
        _check_wait_containers(chosen)
    except SettingError as error:
        raise UserError(*(f"{flag}: {each}" for each in error.problems)) from None
    return chosen


def _check_wait_containers(settings: "PluginSettings") -> None:
    """Refuse what the API server would refuse or drop in each Pod that has a waiting init container.

    Raises:
        SettingError: A field has the wrong type, or a misspelt name.
    """
    from pumice.plugins import PluginSettings, builtin

    default = PluginSettings()
    fields = {
        "resources": ("wait-resources", settings.wait_resources, default.wait_resources),
        "securityContext": (
            "wait-security-context",
            settings.wait_security_context,
            default.wait_security_context,
        ),
    }
    container = {field: given for field, (_, given, own) in fields.items() if given != own}
    if not container:
        return
    from pumice.webhook.rules.case import Case
    from pumice.webhook.rules.rule import RuleSettings
    from pumice.webhook.rules.templates import types
    from pumice.webhook.rules.templates.table import Site
    from pumice.webhook.view import Snapshot

    case = Case(RuleSettings(), Snapshot(), builtin())
    template = {"spec": {"initContainers": [{"name": "wait", **container}]}}
    if types.fits(template):
        return
    types.read(Site(case, ""), template)

    def location(path: str) -> tuple[str, ...]:
        field, *rest = path.removeprefix(".spec.initContainers[0].").split(".", 1)
        return fields[field][0], *rest

    if problems := [*case.errors, *case.warnings]:
        raise SettingError(SettingProblem(location(each.path), each.message) for each in problems)


def read_groups(file: str | None) -> "ResourceGroups":
    """Resource groups of `--admission-conf`; parts without effect are reported on stderr.

    Raises:
        UserError: The file cannot be read or used.
    """
    from pumice.webhook.rules.resource_groups import NO_GROUPS

    if file is None:
        return NO_GROUPS
    from pumice.webhook.resource_group_file import parse

    try:
        groups, warnings = parse(read_bytes(file))
    except SettingError as error:
        first, *more = error.problems
        for problem in (*error.warnings, *(error.problems if more else ())):
            note(f"{file}: {problem}")
        message = f"{len(error.problems)} problems, the first in {first}" if more else first
        raise UserError(f"{file}: {message}") from None
    for warning in warnings:
        note(f"{file}: {warning}")
    return groups


def snapshot(state: Iterable[Raw], *, whole: bool = False) -> "Snapshot":
    """The view of admission on a state; queues `root` and `default` always exist in it.

    If the state has no queues, it is unknown which exist, and a reference to a queue is a warning.

    Args:
        state: The objects.
        whole: Whether the state is complete, also if it has no objects of a kind.

    Raises:
        UserError: An object of the state that rules look at does not decode.
    """
    from pumice.webhook.view import Snapshot

    objects = list(state)
    complete = whole or any(kinds.of_object(each) == kinds.QUEUE for each in objects)
    try:
        return Snapshot.of(objects, complete=complete)
    except msgspec.ValidationError as error:
        raise UserError(f"--state: {error}") from None


def admission(
    state: Iterable[Raw],
    settings: "RuleSettings",
    groups: "ResourceGroups",
    *,
    whole: bool = False,
) -> "Admission":
    """The rules over a state, which is `whole` for a server.

    Raises:
        UserError: An object of the state that rules look at does not decode.
    """
    from pumice.webhook.admission import Admission

    return Admission(settings, snapshot(state, whole=whole), registry(), groups=groups)


def job_check() -> Callable[[Raw], str]:
    """The rules of admission for a Job alone, as a check of the controller.

    The check does not read queues, priority classes and HyperNodes: they may be created later, and the scheduler
    reports missing ones.
    """
    from pumice.webhook.offline import judge
    from pumice.webhook.rules.resource_groups import NO_GROUPS
    from pumice.webhook.rules.rule import RuleSettings

    rules = admission((), RuleSettings(), NO_GROUPS)

    def check(job: Raw) -> str:
        first, more = (errors := judge(rules, job).errors)[:_TOLD], len(errors) - _TOLD
        told = "; ".join(each.within(_LONGEST) for each in first)
        return f"{told}; and {more} more" if more > 0 else told

    return check


def placed(manifest: Manifest) -> Raw:
    """The object with the namespace that the API server would set."""
    metadata = manifest.object.get("metadata")
    if not manifest.namespace or not isinstance(metadata, dict):
        return manifest.object
    return manifest.object | {"metadata": metadata | {"namespace": manifest.namespace}}


def _sighted(manifest: Manifest) -> Raw:
    """A manifest as rules about other objects see it; one that cannot be decoded counts as existing.

    Its own errors are reported by its own check.
    """
    from pumice.webhook.view import Snapshot

    raw = placed(manifest)
    try:
        Snapshot.of([raw])
    except msgspec.ValidationError:
        metadata = {"name": manifest.name, "namespace": manifest.namespace}
        return {"apiVersion": raw["apiVersion"], "kind": raw["kind"], "metadata": metadata}
    return raw


class ManifestChecker:
    """Checks manifests that may refer to each other, over a state."""

    def __init__(
        self,
        settings: "RuleSettings",
        state: Sequence[Manifest],
        others: Sequence[Manifest] = (),
        *,
        groups: "ResourceGroups | None" = None,
    ) -> None:
        """Create a checker.

        Args:
            settings: Settings of admission.
            state: Existing objects; a manifest with the name of one is an update.
            others: The manifests to check; rules also find these objects, except the one that is being checked.
            groups: Resource groups that pods may belong to.

        Raises:
            UserError: An object of the state that rules look at does not decode.
        """
        from pumice.webhook.rules.resource_groups import NO_GROUPS

        self._settings = settings
        self._groups = groups or NO_GROUPS
        self._existing = {each.identity: placed(each) for each in state}
        self._others = {each.identity: _sighted(each) for each in others}
        updated = [self._existing[key] for key in self._existing.keys() & self._others.keys()]
        # `judge` finds these, too; invalid ones must be reported before the first result.
        snapshot(each for each in updated if kinds.of_object(each) == kinds.QUEUE)
        visible = self._existing | self._others
        self._admission = admission(visible.values(), settings, self._groups)
        self._queues = [
            key for key, each in visible.items() if kinds.of_object(each) == kinds.QUEUE
        ]
        self._alone: Admission | None = None

    def judge(self, manifest: Manifest) -> "ManifestResult":
        """Result of validating a manifest, with every problem."""
        from pumice.webhook.offline import judge

        old = self._existing.get(manifest.identity)
        is_queue = kinds.of_object(manifest.object) == kinds.QUEUE
        rules = self._rules_for(manifest) if is_queue else self._admission
        return judge(rules, placed(manifest), "UPDATE" if old else "CREATE", old)

    def _rules_for(self, queue: Manifest) -> "Admission":
        """The rules for a queue, over all objects without it: it must not count as its own sibling."""
        from pumice.webhook.admission import Admission
        from pumice.webhook.view import Snapshot, Without

        key = queue.identity
        if key not in self._others:
            return self._admission
        stored = [self._existing[key]] if key in self._existing else []
        if not stored and self._queues == [key]:  # without it, it is unknown which queues exist
            if self._alone is None:
                rest = (self._existing | self._others).items()
                others = [each for other, each in rest if other != key]
                self._alone = admission(others, self._settings, self._groups)
            return self._alone
        name = str(object_in(self._others[key], "metadata").get("name", ""))
        view = Without(self._admission.view, name, Snapshot.of(stored).queue(name))
        return Admission(self._settings, view, registry(), groups=self._groups)
