"""What an API server itself says about a Pod.

The rules about pod templates say what an API server says about pods made of them, and are compared with a real one.
So they judge a Pod in a file, too. A webhook is asked only about pods that its API server has found valid.
"""

from typing import Any

from pumice.api.fields import FieldError
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.templates.plain import without_plain
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.site import Site
from pumice.webhook.rules.within import Within

__all__ = ["pod_problems", "with_pod_problems"]

Manifest = dict[str, Any]

_ROOT = "$pod"
"""Stands for the Pod in paths and messages of the rules, which expect a part of an object."""

_OF_MAPS = frozenset({"TPL-LABEL", "TPL-ANNOTATION", "TPL-TYPE"})
"""Rules about labels and annotations, which are judged in objects of all kinds, Pods included."""


def pod_problems(case: Case, pod: Manifest, old: Manifest | None) -> Case:
    """Judge a Pod as an API server does, in a new case like the given one.

    What is wrong with the stored Pod, too, is not reported.
    """
    judged = _judged(case, pod)
    if old is not None and (judged.errors or judged.warnings):
        before = _judged(case, old)
        judged.errors = [each for each in judged.errors if each not in before.errors]
        judged.warnings = [each for each in judged.warnings if each not in before.warnings]
    return judged


def with_pod_problems(found: list[FieldError], of_pod: list[FieldError]) -> list[FieldError]:
    """All problems of a Pod, each once.

    Args:
        found: Problems of its metadata, and what the webhooks say. Types in its spec are left to `of_pod`, which knows
            all of them, and that null entries of lists are empty ones to an API server.
        of_pod: What `pod_problems` found. Labels and annotations are left to `found`.
    """
    rest = [each for each in found if each.code != "SCHEMA-TYPE" or not _is_in_spec(each)]
    told = Within([each.path for each in rest])
    return rest + [each for each in of_pod if each.path not in told and not _is_in_map(each)]


def _judged(case: Case, pod: Manifest) -> Case:
    judged = case.sibling()
    template: Manifest = {field: pod[field] for field in ("metadata", "spec") if field in pod}
    pod_template(Site(judged, _ROOT), without_plain(template))
    judged.errors = [_at_root(each) for each in judged.errors]
    judged.warnings = [_at_root(each) for each in judged.warnings]
    return judged


def _at_root(found: FieldError) -> FieldError:
    path = found.path.removeprefix(_ROOT).removeprefix(".")
    return FieldError(path, found.message.replace(f"{_ROOT}.", ""), found.code, found.reason)


def _is_in_spec(found: FieldError) -> bool:
    return found.path == "spec" or found.path.startswith("spec.")


def _is_in_map(found: FieldError) -> bool:
    in_map = found.path.startswith(("metadata.labels", "metadata.annotations"))
    return in_map and found.code in _OF_MAPS
