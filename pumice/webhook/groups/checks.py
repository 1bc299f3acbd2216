"""What a group gives to pods, judged as the API server will judge it on every pod of the group.

The rules are those of pod templates, so that a group cannot write what a template could not hold.
"""

from typing import Any

from pumice.api.fields import FieldError
from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.templates import types
from pumice.webhook.rules.templates.scheduling import SCHEDULING
from pumice.webhook.rules.templates.site import Site
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot

__all__ = ["judged"]

_SPEC = ".spec"


def judged(path: str, given: dict[str, Any]) -> tuple[list[FieldError], list[FieldError]]:
    """Judge fields of a pod's spec.

    Args:
        path: Where the group stands.
        given: The fields that it gives: `affinity`, `tolerations`.

    Returns:
        What is wrong with them and what has no effect; paths go on from the group's.
    """
    case = Case(AdmissionSettings(), Snapshot(), builtin())
    template = {"spec": given}
    if not types.fits(template):
        template, _ = types.read(Site(case, path), template)
    spec, site = template.get("spec", {}), Site(case, f"{path}{_SPEC}")
    SCHEDULING(site, spec, "", template)
    return _from_group(path, case.errors), _from_group(path, case.warnings)


def _from_group(path: str, found: list[FieldError]) -> list[FieldError]:
    """Errors whose paths say where in the file, and not where in a pod."""
    inside = f"{path}{_SPEC}"
    return [
        FieldError(path + each.path.removeprefix(inside), each.message, each.code) for each in found
    ]
