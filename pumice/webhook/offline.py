"""Offline admission of a manifest: what an API server would do with it.

The order is the API server's: unknown fields are dropped, CRD defaults and mutating rules are applied, the schema is
validated, and validating rules are checked. Unlike there, all steps run even if one finds a problem, so all problems
are reported.

The rules about pod templates give the results of an API server for pods, and are tested against a real one. So they are
used for a Pod in a file, too. A webhook gets only pods that its API server has found valid.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from pumice.api import kinds
from pumice.api.fields import FieldError
from pumice.api.kinds import Kind
from pumice.api.meta import Raw
from pumice.api.raw import object_in, text_in
from pumice.api.reviews import GroupVersionResource
from pumice.plugins.other_owners import OWNERS
from pumice.webhook.admission import Admission
from pumice.webhook.patches import applied
from pumice.webhook.questions import Question, without_nulls
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.rules.case import Case, unaffected
from pumice.webhook.rules.jobs.plugins import JOB_PLUGIN_NAME
from pumice.webhook.rules.paths import Within, without
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.table import Site
from pumice.webhook.rules.wired_pods import wired_owner
from pumice.webhook.schema_problems import (
    COMPARING,
    metadata_problems,
    null_entries,
    readable,
    retold,
    schema,
    type_problems,
    unknown_fields,
)


@dataclass(frozen=True, slots=True)
class ManifestResult:
    """Result of validating a manifest.

    Attributes:
        errors: Why it is refused; empty when it is not.
        warnings: Valid values that are probably a mistake.
        patched: The object as it would be stored.
    """

    errors: tuple[FieldError, ...]
    warnings: tuple[FieldError, ...]
    patched: Raw

    @property
    def allowed(self) -> bool:
        """Whether it is admitted."""
        return not self.errors


def judge(
    admission: Admission,
    manifest: Raw,
    operation: str = "CREATE",
    old: Raw | None = None,
) -> ManifestResult:
    """Check a manifest as the API server and its webhooks would; for `UPDATE`, with the stored object.

    Unknown kinds are admitted unchanged.
    """
    try:
        plain: Raw = msgspec.json.decode(msgspec.json.encode(manifest))
    except (TypeError, ValueError, RecursionError) as error:
        problem = FieldError("", f"cannot be written as JSON: {error}", "SCHEMA-TYPE")
        return ManifestResult((problem,), (), manifest)
    try:
        return _judge(admission, plain, operation, old)
    except RecursionError:
        problem = FieldError("", "is nested too deep", "SCHEMA-TYPE")
        return ManifestResult((problem,), (), manifest)


def _judge(admission: Admission, plain: Raw, operation: str, old: Raw | None) -> ManifestResult:
    kind = kinds.of_object(plain)
    if kind is None:
        return ManifestResult((), (), plain)
    if kind in OWNERS:
        return _judged_owner(admission, kind, plain)
    reviewer = _EndpointReviewer(admission, kind, operation, old)
    dropped = _to_schema(kind, plain)
    mutating = reviewer.reviewed(plain, mutating=True)
    patched = _patched(kind, plain, mutating)
    errors, doubts = reviewer.validated(patched, [each.path for each in mutating.errors])
    if kind == kinds.POD:
        case = admission.case(_question(kind, operation, patched, old))
        of_pod = _pod_problems(case, patched, old)
        errors, doubts = _with_pod_problems(errors, of_pod.errors), doubts + of_pod.warnings
    # Rules do not see these entries: a mutating one may have written an entry of the same name.
    problems = metadata_problems(plain, namespaced=False)
    odd = [
        each for each in problems if each.code == "SCHEMA-TYPE" and each.path.startswith(_ENTRIES)
    ]
    warnings = _beside(odd, (*dropped, *mutating.warnings, *doubts))
    return ManifestResult((*odd, *_beside(odd, errors)), warnings, patched)


def _beside(odd: Iterable[FieldError], found: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Results without duplicates, and without those that may be caused by removed labels and annotations."""
    left = list(dict.fromkeys(found))
    for entries in _ENTRIES:
        if paths := [each.path for each in odd if each.path.startswith(entries)]:
            unseen = Within(paths)
            left = [
                each
                for each in left
                if not each.path.startswith(entries) or unaffected([each], unseen, COMPARING)
            ]
    return tuple(left)


_ENTRIES = ("metadata.labels", "metadata.annotations")


@dataclass(frozen=True, slots=True)
class _EndpointReviewer:
    """Calls the endpoints of a kind in the order in which an API server does."""

    admission: Admission
    kind: Kind
    operation: str
    old: Raw | None

    def reviewed(self, manifest: Raw, *, mutating: bool) -> Case:
        """The result of the mutating or of the validating endpoint; an empty one if it is not called."""
        question = _question(self.kind, self.operation, readable(manifest), self.old)
        for each in REGISTRATIONS:
            is_ours = each.kind == self.kind and each.mutating == mutating
            if is_ours and self.operation in each.operations:
                return self.admission.judge(each.path, question)
        return self.admission.case(question)

    def validated(
        self, manifest: Raw, unreadable: list[str]
    ) -> tuple[list[FieldError], list[FieldError]]:
        """Errors and warnings of the schema and the validating rules.

        Readable fields are defaulted and checked without the unreadable ones. Otherwise a missing default, such as the
        name of a task, would be reported.
        """
        errors, warnings = self._found(manifest)
        if not unreadable or self.operation != "CREATE":
            return errors, warnings
        rest = without(without_nulls(manifest), unreadable)
        mutating = self.reviewed(rest, mutating=True)
        if mutating.errors:
            return errors, warnings
        found, doubts = self._found(_patched(self.kind, rest, mutating))
        inside = Within(unreadable)
        told = [each for each in errors if each.path in inside]
        doubts = unaffected(mutating.warnings + doubts, inside, COMPARING)
        return told + unaffected(found, inside, COMPARING), doubts

    def _found(self, manifest: Raw) -> tuple[list[FieldError], list[FieldError]]:
        """Errors and warnings about an object without changes."""
        case, known = self.reviewed(manifest, mutating=False), schema(self.kind)
        found = metadata_problems(manifest, namespaced=self.kind.namespaced)
        if known is not None:
            found += [retold(known, manifest, each) for each in known.validate(manifest)]
        return _merged(found, case.errors), case.warnings


_ROOT = "$pod"
"""Stands for the Pod in paths and messages of the rules, which expect a part of an object."""

_OF_ENTRIES = frozenset({"TPL-LABEL", "TPL-ANNOTATION", "TPL-MANY-LABELS", "TPL-TYPE"})
"""Rules about labels and annotations, which are judged in objects of all kinds, Pods included."""


def _pod_problems(case: Case, pod: Raw, old: Raw | None) -> Case:
    """Check a Pod as an API server does, in a new case like the given one.

    Problems that the stored Pod also has are not reported.
    """
    judged = _judged_pod(case, pod)
    if old is not None and (judged.errors or judged.warnings):
        before = _judged_pod(case, old)
        judged.errors = [each for each in judged.errors if each not in before.errors]
        judged.warnings = [each for each in judged.warnings if each not in before.warnings]
    return judged


def _with_pod_problems(found: list[FieldError], of_pod: list[FieldError]) -> list[FieldError]:
    """All problems of a Pod without duplicates.

    Args:
        found: Problems of its metadata, and those of the webhooks. For types in its spec `of_pod` is used, which knows
            all types, and that an API server reads null items of lists as empty ones.
        of_pod: The result of `_pod_problems`, without labels and annotations.
    """
    spec = Within(["spec"])
    rest = [each for each in found if each.code != "SCHEMA-TYPE" or each.path not in spec]
    told = Within([each.path for each in rest])
    return rest + [
        each
        for each in of_pod
        if each.path not in told
        and not (each.path.startswith(_ENTRIES) and each.code in _OF_ENTRIES)
    ]


def _judged_pod(case: Case, pod: Raw) -> Case:
    judged = case.sibling()
    template: Raw = {field: pod[field] for field in ("metadata", "spec") if field in pod}
    pod_template(Site(judged, _ROOT), template)
    judged.errors = [_at_root(each) for each in judged.errors]
    judged.warnings = [_at_root(each) for each in judged.warnings]
    return judged


def _at_root(found: FieldError) -> FieldError:
    path = found.path.removeprefix(_ROOT).removeprefix(".")
    return FieldError(path, found.message.replace(f"{_ROOT}.", ""), found.code, found.reason)


def _judged_owner(admission: Admission, kind: Kind, plain: Raw) -> ManifestResult:
    """The result about plugins for the pods of an owner; the owner itself does not change."""
    case = admission.case(_question(kind, "CREATE", plain, None))
    try:
        wired_owner(case, msgspec.convert(plain, OWNERS[kind]))
    except msgspec.ValidationError as error:
        return ManifestResult(tuple(type_problems(kind, plain, error)), (), plain)
    return ManifestResult(tuple(case.errors), tuple(case.warnings), plain)


def _patched(kind: Kind, manifest: Raw, case: Case) -> Raw:
    """The object after mutating rules; CRD defaults are applied to what they add, as on the API server."""
    if case.errors or not case.patch.operations:
        return manifest
    changed, known = applied(manifest, case.patch.operations), schema(kind)
    added = any(
        isinstance(each.value, dict | list) and each.value != [] for each in case.patch.operations
    )
    if added and known is not None:
        known.default(changed)
    return changed


def _to_schema(kind: Kind, manifest: Raw) -> list[FieldError]:
    """Prune and default in place, with a warning for each pruned field."""
    known = schema(kind)
    if known is None:
        return []
    dropped = known.prune_paths(manifest)
    nulls = null_entries(known, manifest)
    known.default(manifest)
    return [*unknown_fields(known, dropped), *nulls]


def _merged(of_schema: list[FieldError], of_rules: list[FieldError]) -> list[FieldError]:
    """Both lists of problems; of two about one field the rule's, which says more."""
    # Names with an invalid part are invalid, too.
    if any(each.path in _NAMES for each in of_schema):
        of_rules = [each for each in of_rules if each.code != JOB_PLUGIN_NAME.code]
    told = {error.path for error in of_rules}
    return [error for error in of_schema if told.isdisjoint(_places(error))] + of_rules


_NAMES = ("metadata.name", "metadata.generateName")


def _places(found: FieldError) -> tuple[str, ...]:
    """Paths at which a rule reports the same problem: for a duplicate item, that of its name."""
    twice = found.code == "SCHEMA-DUPLICATE"
    return (found.path, f"{found.path}.name") if twice else (found.path,)


def _question(
    kind: Kind, operation: str, manifest: Raw, old: Raw | None
) -> Question[msgspec.Raw | None]:
    named = object_in(manifest, "metadata")
    return Question(
        uid="offline",
        resource=GroupVersionResource(group=kind.group, version=kind.version, resource=kind.plural),
        name=text_in(named, "name"),
        namespace=text_in(named, "namespace") if kind.namespaced else "",
        operation=operation,
        object=msgspec.Raw(msgspec.json.encode(manifest)),
        old_object=None if old is None else msgspec.Raw(msgspec.json.encode(old)),
    )
