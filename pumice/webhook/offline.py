"""Admission of a manifest at a desk: what an API server would do to it, from the file alone.

The order is the API server's: unknown fields go, CRD defaults come, mutating rules write theirs, the
schema is checked, validating rules judge. Unlike there, the next step is taken even when one
found something, so everything is told at once.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api import kinds
from pumice.api.fields import FieldError, did_you_mean
from pumice.api.kinds import Kind
from pumice.api.reviews import GroupVersionResource, Request
from pumice.api.structural import Structural
from pumice.plugins.native import OWNERS
from pumice.webhook.admission import Admission
from pumice.webhook.metadata_problems import metadata_problems, with_texts
from pumice.webhook.null_entries import null_entries
from pumice.webhook.patches import applied
from pumice.webhook.questions import bare, without_nulls
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.foreign_pods import foreign_owner
from pumice.webhook.rules.within import Within
from pumice.webhook.salvage import trusted, without
from pumice.webhook.type_problems import schema

__all__ = ["Judgement", "judge"]

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of a manifest.

    Attributes:
        errors: Why it is refused; empty when it is not.
        warnings: What is legal and doubtful.
        patched: The object as it would be stored.
    """

    errors: tuple[FieldError, ...]
    warnings: tuple[FieldError, ...]
    patched: Manifest

    @property
    def allowed(self) -> bool:
        """Whether it is admitted."""
        return not self.errors


def judge(
    admission: Admission,
    manifest: Manifest,
    operation: str = "CREATE",
    old: Manifest | None = None,
) -> Judgement:
    """Judge a manifest as the API server and its webhooks would.

    A kind that admission knows nothing of is admitted as it is.

    Args:
        admission: The rules.
        manifest: The object, as a file holds it.
        operation: `CREATE`, `UPDATE` or `DELETE`.
        old: The stored object, for the latter two.
    """
    try:
        plain: Manifest = msgspec.json.decode(msgspec.json.encode(manifest))
    except (TypeError, ValueError, RecursionError) as error:
        problem = FieldError("", f"cannot be written as JSON: {error}", "SCHEMA-TYPE")
        return Judgement((problem,), (), manifest)
    try:
        return _judge(admission, plain, operation, old)
    except RecursionError:
        problem = FieldError("", "is nested too deep", "SCHEMA-TYPE")
        return Judgement((problem,), (), manifest)


def _judge(
    admission: Admission, plain: Manifest, operation: str, old: Manifest | None
) -> Judgement:
    kind = kinds.of_object(plain)
    if kind is None:
        return Judgement((), (), plain)
    if kind in OWNERS:
        return _judged_owner(admission, kind, plain)
    warnings = _to_schema(kind, plain) if operation != "DELETE" else []
    patched, errors = plain, list[FieldError]()
    rest, paths = None, list[str]()
    for registration in REGISTRATIONS:
        if registration.kind != kind or operation not in registration.operations:
            continue
        asked = with_texts(patched)
        case = admission.judge(registration.path, _request(kind, operation, asked, old))
        if registration.mutating:
            warnings += case.warnings
            patched = _patched(kind, patched, case)
            if case.errors and operation == "CREATE":
                paths = [problem.path for problem in case.errors]
                rest = _rest(
                    admission, registration.path, kind, without(without_nulls(asked), paths)
                )
        elif rest is None:
            errors += case.errors
            warnings += case.warnings
        else:
            filled = admission.judge(registration.path, _request(kind, operation, rest, old))
            errors += _of_both(case.errors, filled.errors, paths)
            warnings += _of_both(case.warnings, filled.warnings, paths)
    if operation != "DELETE":
        errors = _merged(_schema_problems(kind, patched), errors)
    return Judgement(tuple(dict.fromkeys(errors)), tuple(dict.fromkeys(warnings)), patched)


def _judged_owner(admission: Admission, kind: Kind, plain: Manifest) -> Judgement:
    """What becomes of the pods of an owner, as far as plugins are concerned; nothing becomes of itself."""
    case = admission.case(bare(_request(kind, "CREATE", plain, None)))
    try:
        foreign_owner(case, msgspec.convert(plain, OWNERS[kind]))
    except msgspec.ValidationError as error:
        return Judgement((FieldError("", str(error), "SCHEMA-TYPE"),), (), plain)
    return Judgement(tuple(case.errors), tuple(case.warnings), plain)


def _patched(kind: Kind, manifest: Manifest, case: Case) -> Manifest:
    """What a mutating rule makes of it; what it adds has defaults in its turn, as on the API server."""
    if case.errors or not case.patch.operations:
        return manifest
    changed, known = applied(manifest, case.patch.operations), schema(kind)
    added = any(
        isinstance(each.value, dict | list) and each.value != [] for each in case.patch.operations
    )
    if added and known is not None:
        known.default(changed)
    return changed


def _rest(admission: Admission, path: str, kind: Kind, readable: Manifest) -> Manifest | None:
    """What can be read of a new object, with its defaults; None where more is wrong than was taken out.

    Without its defaults it would be refused for what a mutating rule fills in, such as the name of a task.
    """
    case = admission.judge(path, _request(kind, "CREATE", readable, None))
    return None if case.errors else _patched(kind, readable, case)


def _of_both(
    found: list[FieldError], filled: list[FieldError], unreadable: list[str]
) -> list[FieldError]:
    """Of what was found, that which does not go by the defaults, and what is said of unreadable fields."""
    lasting, inside = {(each.path, each.code) for each in filled}, Within(unreadable)
    return [each for each in found if (each.path, each.code) in lasting or each.path in inside]


def _to_schema(kind: Kind, manifest: Manifest) -> list[FieldError]:
    """Prune and default in place; what goes by that is warned about."""
    known = schema(kind)
    if known is None:
        return []
    dropped = known.prune_paths(manifest)
    nulls = null_entries(known, manifest)
    known.default(manifest)
    unknown = [FieldError(path, _unknown(known, path), "SCHEMA-UNKNOWN") for path in dropped]
    return [*unknown, *nulls]


def _unknown(known: Structural, path: str) -> str:
    hint = did_you_mean(path.rpartition(".")[2], known.names_beside(path))
    return f"is not a field of this kind and is dropped{hint}"


def _schema_problems(kind: Kind, manifest: Manifest) -> list[FieldError]:
    known = schema(kind)
    of_fields = [] if known is None else known.validate(manifest)
    return [*metadata_problems(manifest), *of_fields]


def _merged(of_schema: list[FieldError], of_rules: list[FieldError]) -> list[FieldError]:
    """Both, but of two about one field the rule's: it knows more, and says what would be right."""
    unread = [each.path for each in of_schema if _is_entry(each) and each.code == "SCHEMA-TYPE"]
    if unread:
        of_rules = [each for each in of_rules if not _is_entry(each) or trusted([each], unread)]
    told = {error.path for error in of_rules}
    return [error for error in of_schema if error.path not in told] + of_rules


def _is_entry(found: FieldError) -> bool:
    return found.path.startswith(("metadata.labels", "metadata.annotations"))


def _request(kind: Kind, operation: str, manifest: Manifest, old: Manifest | None) -> Request:
    meta = manifest.get("metadata")
    named = meta if isinstance(meta, dict) else {}
    name, namespace = named.get("name"), named.get("namespace")
    encoded = msgspec.Raw(msgspec.json.encode(manifest))
    return Request(
        uid="offline",
        resource=GroupVersionResource(group=kind.group, version=kind.version, resource=kind.plural),
        name=name if isinstance(name, str) else "",
        namespace=namespace if kind.namespaced and isinstance(namespace, str) else "",
        operation=operation,
        object=encoded if operation != "DELETE" else msgspec.Raw(b"null"),
        old_object=msgspec.Raw(msgspec.json.encode(old)),
    )
