"""What would change for the objects of a Volcano cluster and its scheduler's configuration, ranked by harm.

An object is judged as if it were submitted again. Objects that another object of the cluster makes are judged with that
one: the Jobs of a CronJob or a JobFlow, the PodGroup of a Job, and pods that one owner makes alike.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from pumice.api import keys
from pumice.api.fields import FieldError
from pumice.api.kinds import CRON_JOB, JOB, JOB_FLOW, POD, POD_GROUP, VOLCANO, of_object
from pumice.api.meta import Raw
from pumice.api.not_here_yet import HARMS, TABLE, Harm, Use, named
from pumice.api.raw import object_in, objects_in
from pumice.cli.files.checking import ManifestChecker
from pumice.cli.files.manifests import Manifest
from pumice.cli.migration import ranks
from pumice.scheduler import Config, ConfigError, load_config
from pumice.webhook.offline import ManifestResult
from pumice.webhook.rules.catalogue import by_code
from pumice.webhook.rules.not_here_yet import NOT_HERE_YET
from pumice.webhook.rules.rule import RuleSettings

_NOT_HERE_YET = NOT_HERE_YET.code
_ROWS = {str(Use(row, "")): row for row in TABLE}


class MigrationFinding(NamedTuple):
    """One thing that would change.

    Attributes:
        harm: What would become of workload.
        object: `Kind/namespace/name`.
        path: The field; empty for the object as a whole.
        code: The rule, or a code of the configuration's problems.
        message: What Pumice does.
        remedy: What to do.
    """

    harm: Harm
    object: str
    path: str
    code: str
    message: str
    remedy: str

    @property
    def rank(self) -> int:
        """0 for the greatest harm."""
        return HARMS.index(self.harm)


def of_objects(manifests: Iterable[Manifest]) -> Iterator[MigrationFinding]:
    """What would change for objects, in their order."""
    given = list(manifests)
    judged = [each for each in given if of_object(each.object) is not None]
    admission = _Admission(judged)
    seen: set[tuple[str, ...]] = set()
    uids = {_uid(each.object) for each in judged} - {""}
    unserved: set[str] = set()
    for manifest in given:
        kind = str(manifest.object["kind"])
        row = named("kind", kind)
        if row is not None and kind not in unserved:
            unserved.add(kind)
            name = f"{kind}/{manifest.name}"
            yield MigrationFinding(row.harm, name, "", _NOT_HERE_YET, row.outcome, row.remedy)
        elif _is_judged(manifest, uids):
            owner = str(_controller(manifest.object).get("uid") or manifest.identity)
            for found in _in_short(_of_object(manifest, admission)):
                if (owner, *found[2:]) not in seen:
                    seen.add((owner, *found[2:]))
                    yield found


_MOST = 100
"""Findings of one object; `pumice lint` shows all of them."""


def _in_short(found: Iterable[MigrationFinding]) -> Iterator[MigrationFinding]:
    """What is found in several fields of an object once, and of very many findings the most harmful."""
    alike: dict[tuple[str, str], list[MigrationFinding]] = {}
    for each in found:
        alike.setdefault((each.code, each.message), []).append(each)
    ranked = sorted(alike.values(), key=lambda group: group[0].rank)
    for first, *others in ranked[:_MOST]:
        more = f" (here and in {len(others)} more)" if others else ""
        yield first._replace(message=f"{first.message}{more}")
    if left := ranked[_MOST:]:
        message = f"and {sum(map(len, left))} more findings, which `pumice lint` shows"
        yield left[0][0]._replace(path="", message=message)


def _is_judged(manifest: Manifest, uids: set[str]) -> bool:
    """Whether an object is submitted by itself, and Volcano has something to do with it."""
    kind, raw = of_object(manifest.object), manifest.object
    owner = _controller(raw)
    if kind == POD:
        return (
            object_in(raw, "spec").get("schedulerName") == keys.DEFAULT_SCHEDULER
            and owner.get("apiVersion") != JOB.api_version
        )
    makers = {JOB: (CRON_JOB.kind, JOB_FLOW.kind), POD_GROUP: (JOB.kind,)}
    made = makers.get(kind, ()) if kind is not None else ()
    return kind in VOLCANO and not (owner.get("kind") in made and str(owner.get("uid")) in uids)


def _uid(raw: Raw) -> str:
    return str(object_in(raw, "metadata").get("uid") or "")


def _controller(raw: Raw) -> Raw:
    """The owner reference of the object that made another one; empty without."""
    owners = objects_in(object_in(raw, "metadata"), "ownerReferences")
    return next((each for each in owners if each.get("controller")), owners[0] if owners else {})


class _Admission:
    """Admission of objects that refer to each other, as it is by default and with `strict-upstream`."""

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        self._manifests = manifests
        self._checker = ManifestChecker(RuleSettings(), (), manifests)

    def judge(self, manifest: Manifest) -> ManifestResult:
        return self._checker.judge(manifest)

    @cached_property
    def _lenient(self) -> ManifestChecker:
        return ManifestChecker(RuleSettings(strict_upstream=True), (), self._manifests)

    def refused_by_volcano(self, manifest: Manifest) -> set[tuple[str, str]]:
        """Code and path of errors that are none of rules stricter than Volcano's."""
        return {(each.code, each.path) for each in self._lenient.judge(manifest).errors}


def _of_object(manifest: Manifest, admission: _Admission) -> Iterator[MigrationFinding]:
    result = admission.judge(manifest)
    identity, kind = manifest.identity, str(manifest.object["kind"])

    def counts(found: FieldError) -> bool:
        """Of pods the API server has judged all that is not about Volcano."""
        is_ours = kind != POD.kind or found.code.startswith(("POD-", _NOT_HERE_YET))
        return is_ours and found.code not in ranks.SAME and not found.path.startswith("status")

    if errors := list(filter(counts, result.errors)):
        same = admission.refused_by_volcano(manifest)
        harm = ranks.REFUSED_KINDS.get(kind, ranks.NOT_RUN)
        for error in errors:
            remedy = _remedy(error, kind, is_stricter=(error.code, error.path) not in same)
            yield MigrationFinding(harm, identity, error.path, error.code, error.message, remedy)
    for warning in filter(counts, result.warnings):
        yield _of_warning(identity, warning)


def _of_warning(identity: str, warning: FieldError) -> MigrationFinding:
    row = _ROWS.get(warning.message) if warning.code == _NOT_HERE_YET else None
    if row is not None:
        return MigrationFinding(
            row.harm, identity, warning.path, warning.code, row.outcome, row.remedy
        )
    harm = ranks.WARNED.get(warning.code, ranks.WORDS)
    remedy = ranks.REMEDIES.get(warning.code, ranks.EXPLAINED.format(code=warning.code))
    return MigrationFinding(harm, identity, warning.path, warning.code, warning.message, remedy)


def _remedy(error: FieldError, kind: str, *, is_stricter: bool) -> str:
    if kind in ranks.REFUSED_KINDS:
        return ranks.STAYS
    if error.code in ranks.REMEDIES:
        return ranks.REMEDIES[error.code]
    if is_stricter and by_code(error.code) is not None:
        return f"correct it; until then admission takes it with setting rule.{error.code}=warn"
    return "correct it before it is submitted again"


def without_configuration() -> MigrationFinding:
    """What happens if no configuration is given to Pumice."""
    message, remedy = ranks.NO_CONFIG
    return MigrationFinding(
        ranks.ELSEWHERE, "scheduler", "scheduler.config", "SCHED-DEFAULT", message, remedy
    )


def of_configuration(name: str, text: str) -> Iterator[MigrationFinding]:
    """What would change with the scheduler's configuration.

    Args:
        name: What the configuration is called.
        text: The file, or a ConfigMap with one.
    """
    try:
        config = load_config(text)
    except ConfigError as error:
        for each in error.errors:
            remedy = "correct or remove it: with it the scheduler does not start"
            yield MigrationFinding(ranks.NOT_RUN, name, each.path, each.code, each.message, remedy)
        return
    for warning in config.warnings:
        yield _of_config_warning(name, warning)
    yield from _of_changes(name, config)


def _of_config_warning(name: str, warning: str) -> MigrationFinding:
    path, _, message = warning.partition(": ")
    word, _, rest = message.removeprefix("plugin ").partition(" ")
    if rest.startswith("is not part of this version"):
        row = named("plugin", word)
        if row is not None:
            return MigrationFinding(
                row.harm, name, path, _NOT_HERE_YET, f"{word}: {row.outcome}", row.remedy
            )
    found = next(each for each in ranks.CONFIG_WARNINGS if each.pattern.search(warning))
    return MigrationFinding(found.harm, name, path, "SCHED-IGNORED", message, found.remedy)


def _of_changes(name: str, config: Config) -> Iterator[MigrationFinding]:
    """Plugins and actions of the configuration that decide otherwise."""
    configured = {("plugin", each.spec.name): each.arguments for each in config.plugins}
    configured |= {("action", spec.name): arguments for spec, arguments in config.actions}
    for change in ranks.CHANGES:
        arguments = configured.get((change.what, change.name))
        if arguments is not None and not arguments.is_set(change.argument):
            path = f"{change.what} {change.name}"
            yield MigrationFinding(
                change.harm, name, path, "SCHED-CHANGED", change.outcome, change.remedy
            )
