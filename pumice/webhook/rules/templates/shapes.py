"""Shapes of checks that several rows of tables have, as methods of the rule that they enforce.

Three rules are of many files: values that Kubernetes accepts with a warning, or only with a feature that is off by default. The API
server says so in a warning when a pod is created; pods of a Job are made by a controller, so Pumice warns when the Job is applied.

Source: the warnings that a Kubernetes API server of version 1.36 gives for pods, and the fields that its OpenAPI documents mark as
deprecated.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any

from pumice.api.fields import Reason
from pumice.api.json_words import either, quoted
from pumice.api.meta import Raw
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.table import Check, Row, Site, compiled

Problem = Callable[[str], str | None]
"""Returns what is wrong with a string, or None."""

NOT_SET = "must be set, found none"
_REQUIRED: Reason = "FieldValueRequired"


class FieldRule(Rule):
    """A rule about fields of templates. Each method creates a check for rows of tables."""

    __slots__ = ()

    def judged(
        self, problem: Callable[[Site, Any, Raw], object], reason: Reason | None = None
    ) -> Check:
        """A value without a problem; `problem` gets the site, the value, and the object that has it."""

        def check(site: Site, found: Any, field: str, owner: Raw) -> None:
            if wrong := problem(site, found, owner):
                site.report(self, str(wrong), field, reason)

        return check

    def breaking(
        self, message: str, breaks: Callable[[Site, Any, Raw], object] = lambda *_: True
    ) -> Check:
        """A value that breaks the rule where `breaks` says so; by default every value of the field does."""
        return self.judged(lambda *found: breaks(*found) and message)

    def required(
        self,
        problem: Problem | None = None,
        *,
        message: str = NOT_SET,
        reason: Reason | None = _REQUIRED,
    ) -> Check:
        """A value that must not be empty, and must have no problem."""

        def check(site: Site, found: Any, field: str, _: Raw) -> None:
            if not found:
                site.report(self, message, field, reason)
            elif problem is not None and (wrong := problem(found)):
                site.report(self, wrong, field)

        return check

    def present(self, then: Check, reason: Reason | None = None, message: str = NOT_SET) -> Check:
        """A value that must be present, even if it is empty; another check validates it."""

        def check(site: Site, found: Any, field: str, owner: Raw) -> None:
            if found is None:
                site.report(self, message, field, reason)
            else:
                then(site, found, field, owner)

        return check

    def excludes(self, other: str, message: str = "") -> Check:
        """A value that must be empty if another member of its object is not."""
        wrong = message or f"must not be set together with {other}"
        return self.breaking(wrong, lambda _, found, owner: found and owner.get(other))

    def needs(self, other: str, message: str = "") -> Check:
        """A value that, unless it is empty, requires another member of its object."""

        def check(site: Site, found: Any, field: str, owner: Raw) -> None:
            if found and other not in owner:
                around, dot, own = field.rpartition(".")
                wrong = message or f"must be set with {own}"
                site.report(self, f"{wrong}, found none", f"{around}{dot}{other}")

        return check

    def only_with(self, other: str, value: str, message: str = "") -> Check:
        """A field that is allowed only if another member of its object has a certain value."""
        wrong = message or f"must not be set unless {other} is {value}"
        return self.breaking(wrong, lambda _, _found, owner: owner.get(other) != value)

    def not_for(self, system: str, *, what: str = "", empty: bool = False) -> Check:
        """A field that a pod of an operating system must not have; an empty value is allowed if `empty` is true.

        `what` names the field in messages.
        """
        wrong = f"{what} cannot be set for a {system} pod".lstrip()
        return self.breaking(
            wrong, lambda site, found, _: site.pod.os == system and (found or not empty)
        )

    def valid(self, problem: Problem, *, empty: bool = False) -> Check:
        """A string that must have no problem; an empty one is skipped if `empty` is true."""

        def check(site: Site, found: str, field: str, _: Raw) -> None:
            if (found or not empty) and (wrong := problem(found)):
                site.report(self, wrong, field)

        return check

    def matching(self, wanted: str, fits: Callable[[str], object], *, empty: bool = False) -> Check:
        """A string that must match; messages describe the expected form. An empty one is skipped if `empty` is true."""
        return self.valid(
            lambda found: None if fits(found) else f"{wanted}, found {quoted(found)}", empty=empty
        )

    def one_of(self, *known: str, problem: str = "", empty: bool = False) -> Check:
        """A string that must be one of the known ones; an empty one is skipped if `empty` is true."""
        words = frozenset((*known, "") if empty else known)
        start = f"{problem}: " if problem else ""

        def check(site: Site, found: str, field: str, _: Raw) -> None:
            if found not in words:
                hint = site.case.did_you_mean(found, known)
                message = f"{start}must be {either(known)}, found {quoted(found)}{hint}"
                site.report(self, message, field, "FieldValueNotSupported")

        return check

    def within(self, low: int, high: float = inf, words: str = "") -> Check:
        """A number from `low` to `high`; `words` describe the range in messages."""
        if not words and high < inf:
            words = f"must be between {low} and {high}, inclusive"
        wanted = words or f"must be greater than or equal to {low}"

        def check(site: Site, found: int, field: str, _: Raw) -> None:
            if not low <= found <= high:
                site.report(self, f"{wanted}, found {found}", field)

        return check

    def at_most(self, most: int, reason: Reason | None = None, unit: str = "") -> Check:
        """A list or string whose length is at most this; messages name the unit."""
        wrong = f"must not have more than {most}{unit}, found "
        return self.judged(
            lambda _, found, _o: len(found) > most and f"{wrong}{len(found)}", reason
        )

    def without_backsteps(self) -> Check:
        """A path that must not contain `..`."""
        return self.matching("must not contain '..'", lambda path: ".." not in path.split("/"))

    def relative_path(self) -> Check:
        """A path that must be relative and not contain `..`."""
        relative = self.matching("must be a relative path", lambda path: not path.startswith("/"))
        return compiled(Row("", relative), Row("", self.without_backsteps()))

    def unique(
        self, member: str, *, words: str = "is already the name of", then: Check | None = None
    ) -> Check:
        """A list of objects of which no two have the same value in a member; empty values are skipped.

        Messages have `words` between the value and the path of the first. `then` checks each object.
        """

        def check(site: Site, found: Any, field: str, _: Raw) -> None:
            if then is None and len({item.get(member) for item in found}) == len(found):
                return
            seen: dict[str, int] = {}
            for index, item in enumerate(found):
                value = item.get(member)
                if value and (first := seen.setdefault(value, index)) != index:
                    message = f"{quoted(value)} {words} {site.path}.{field}[{first}]"
                    site.report(self, message, f"{field}[{index}].{member}")
                if then is not None:
                    then(site, item, f"{field}[{index}]", found)

        return check

    def exactly_one(
        self, known: Sequence[str], neither: str, several: str, *, never: Sequence[str] = ()
    ) -> Check:
        """An object that must have exactly one of these members.

        An object whose only member is not known passes, unless it looks misspelt: Kubernetes adds members to such
        objects, and a manifest may be for a newer Kubernetes.

        Messages begin with `neither` or `several`. Similar objects have the members `never`, which this type does not.
        """
        members = either([f"`{each}`" for each in known])

        def wrong(site: Site, union: Any, _: Raw) -> str:
            found = [each for each in known if each in union]
            if len(found) > 1:
                return f"{several}, found {' and '.join(found)}; keep one of them"
            if found:
                return ""
            others = [each for each, value in union.items() if isinstance(value, dict)]
            hints = (site.case.did_you_mean(each, known) for each in others)
            hint = next((hint for hint in hints if hint), "")
            if not hint and any(each not in never for each in others):
                return ""
            return f"{neither}{members}, found {quoted(others[0]) if others else 'none'}{hint}"

        return self.judged(wrong)

    def one_of_two(
        self, one: str, other: str, *, neither: str = "", both: str = "", empty: bool = True
    ) -> Check:
        """An object that must have one of two members and not both; empty ones count as missing if `empty` is true."""
        wanted = f"must have {one} or {other}"

        def wrong(_: Site, found: Raw, _owner: Raw) -> str:
            has = [bool(found.get(each)) if empty else each in found for each in (one, other)]
            if all(has):
                return f"{both or wanted}, found both"
            return "" if any(has) else f"{neither or wanted}, found neither"

        return self.judged(wrong)


def refused(
    code: str,
    title: str,
    example: str,
    *,
    reason: Reason = "FieldValueInvalid",
    later: bool = False,
    compares: bool = False,
) -> FieldRule:
    """A rule that Kubernetes enforces, without a reason of its own.

    If `later` is true, Kubernetes admits the template and refuses its pods, and Volcano admits both.
    """
    why = "Kubernetes refuses the pod otherwise."
    if later:
        why = "Kubernetes takes the template, and then refuses each of its pods."
    return FieldRule(code, title, why, example, reason, stricter=later, compares=compares)


warned = partial(FieldRule, level="warn")
"""A rule that warns, unless settings say otherwise."""

stricter = partial(FieldRule, stricter=True)
"""A rule that refuses what Volcano admits."""


TPL_FEATURE = FieldRule(
    "TPL-FEATURE",
    "a template needs no feature of Kubernetes that is off by default",
    "Kubernetes refuses the pod where the feature is off; where it is on, turn this rule off.",
    "tolerations: [{key: memory, operator: Gt, value: '64'}]",
    reason="FieldValueNotSupported",
)
TPL_DEPRECATED = warned(
    "TPL-DEPRECATED",
    "a template uses nothing that Kubernetes has deprecated",
    "Most deprecated fields have no effect: pods wait for nodes with an old label, or "
    "for a volume that no node can mount.",
    "nodeSelector: {beta.kubernetes.io/arch: amd64}",
)
TPL_DOUBTFUL = warned(
    "TPL-DOUBTFUL",
    "a template has no field without effect, or with an effect that is probably not meant",
    "Kubernetes admits it with a warning, which only the controller that creates the pods receives.",
    "resources: {limits: {memory: 512m}}",
)

NODE_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "taints and tolerations",
    "app.kubernetes.io/created-by": "",
}
"""Deprecated labels of nodes with their successors; the last one has none."""
ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/affinity": "spec.affinity",
    "scheduler.alpha.kubernetes.io/critical-pod": "spec.priorityClassName",
    "scheduler.alpha.kubernetes.io/tolerations": "spec.tolerations",
    "security.alpha.kubernetes.io/sysctls": "spec.securityContext.sysctls",
    "security.alpha.kubernetes.io/unsafe-sysctls": "spec.securityContext.sysctls",
}
"""Annotations without an effect, with the fields that replace them."""


def node_label(site: Site, key: str, field: str, _: Raw) -> None:
    """Warn about a deprecated label of nodes."""
    if key in NODE_LABELS:
        successor = NODE_LABELS[key]
        message = f"{key} is a deprecated node label"
        message += f"; use {successor} instead" if successor else ""
        site.report(TPL_DEPRECATED, message, field)


def annotation(site: Site, key: str, successor: str, problem: str = "has no effect") -> None:
    """Warn about an annotation of the pod that a field has replaced."""
    site.report(TPL_DEPRECATED, f"{problem}; use {successor} instead", key)


def overlaps(site: Site, files: list[tuple[str, str]]) -> None:
    """Check that no file of a volume is also a directory or another file of it."""
    above, above_at = "", ""
    for path, at in sorted((f"{path.rstrip('/')}/", at) for path, at in files if path):
        if above and path.startswith(above):
            taken = f"{quoted(above[:-1])} is the file of {above_at}"
            site.report(TPL_DOUBTFUL, f"{quoted(path[:-1])} is not free: {taken}", at)
        else:
            above, above_at = path, at
