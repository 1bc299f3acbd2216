"""Annotations that Kubernetes itself reads, from before there were fields for them."""

import json
import re
from typing import Any

from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.webhook.rules.templates.scheduling import SCHEDULING
from pumice.webhook.rules.templates.shapes import ANNOTATIONS, annotation, refused
from pumice.webhook.rules.templates.table import Site
from pumice.webhook.rules.templates.types import fits

TPL_ANNOTATION_VALUE = refused(
    "TPL-ANNOTATION-VALUE",
    "annotations that Kubernetes reads have valid values",
    "annotations: {controller.kubernetes.io/pod-deletion-cost: high}",
)
TPL_PROFILE_MATCH = refused(
    "TPL-PROFILE-MATCH",
    "where an annotation and a field both name a profile of seccomp or AppArmor, it is the same one",
    "annotations: {seccomp.security.alpha.kubernetes.io/pod: unconfined}, "
    "securityContext: {seccompProfile: {type: RuntimeDefault}}",
    reason="FieldValueForbidden",
    later=True,
    compares=True,
)

_MIRROR = "kubernetes.io/config.mirror"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_TOLERATION_FIELDS = ("key", "operator", "value", "effect", "tolerationSeconds")
_LOCALHOST = "localhost/"
_KINDS = {
    "runtime/default": "RuntimeDefault",
    "docker/default": "RuntimeDefault",
    "unconfined": "Unconfined",
}
_COST = re.compile(r"(-?)0*([0-9]{1,10})", re.ASCII)
_local_path = TPL_ANNOTATION_VALUE.relative_path()


def annotations(site: Site, found: Raw, spec: Raw) -> None:
    """Check the annotations of a template that have a meaning for Kubernetes."""
    for key, value in found.items():
        if "kubernetes.io/" not in key:
            continue
        if key == _DELETION_COST:
            _deletion_cost(site, value)
        elif key == _MIRROR and not spec.get("nodeName"):
            message = "must set spec.nodeName if mirror pod annotation is set: a node runs such a pod by itself"
            site.report(TPL_ANNOTATION_VALUE, message, key)
        elif key in ANNOTATIONS:
            annotation(site, key, ANNOTATIONS[key])
            if key == _TOLERATIONS and value:
                _tolerations(site, value)
        elif key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER):
            _seccomp(site, key, value, spec)
        elif key.startswith(_APPARMOR):
            _apparmor(site, key, value, spec)


def _deletion_cost(site: Site, value: str) -> None:
    low, high = -(2**31), 2**31 - 1
    read = None if value.startswith("0") and value != "0" else _COST.fullmatch(value)
    # Without leading zeros, since Python refuses to read thousands of digits.
    if read is None or not low <= int(read[1] + read[2]) <= high:
        message = f"must be a 32bit integer ({low} to {high}), found {quoted(value)}"
        site.report(TPL_ANNOTATION_VALUE, message, _DELETION_COST)


def _tolerations(site: Site, value: str) -> None:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = value
    read = [_toleration(each) for each in found] if isinstance(found, list) else []
    if not fits({"spec": {"tolerations": read}}) or not isinstance(found, list | None):
        message = f"must be a list of tolerations as JSON, found {quoted(value)}"
        site.report(TPL_ANNOTATION_VALUE, message, _TOLERATIONS)
        return
    SCHEDULING(site, {"tolerations": read}, _TOLERATIONS, {})


def _toleration(found: Any) -> Any:
    """A toleration with lower-case field names and without nulls, as the API server reads it here."""
    if not isinstance(found, dict):
        return {} if found is None else found
    lower = {key.lower(): value for key, value in found.items() if value is not None}
    return {name: lower[name.lower()] for name in _TOLERATION_FIELDS if name.lower() in lower}


def _seccomp(site: Site, key: str, value: str, spec: Raw) -> None:
    """Check a seccomp profile, also against the field of the pod or the container."""
    if value.startswith(_LOCALHOST):
        _local_path(site, value.removeprefix(_LOCALHOST), key, spec)
    elif value not in _KINDS:
        known = ", ".join(_KINDS)
        message = f"must be a valid seccomp profile ({known} or {_LOCALHOST}PROFILE), found {quoted(value)}"
        site.report(TPL_ANNOTATION_VALUE, message, key)
    name = key.removeprefix(_SECCOMP_CONTAINER)
    owners = [spec] if key == _SECCOMP_POD else _named(spec, name)
    fields = [owner.get("securityContext", {}).get("seccompProfile") for owner in owners]
    if not fields or None in fields:
        annotation(site, key, "securityContext.seccompProfile")
    for field in fields:
        _match(site, key, value, field)


def _apparmor(site: Site, key: str, value: str, spec: Raw) -> None:
    """Check an AppArmor profile, its container, and the agreement with the field."""
    name = key.removeprefix(_APPARMOR)
    owners = _named(spec, name)
    if not owners:
        site.report(TPL_ANNOTATION_VALUE, f"there is no container {quoted(name)}", key)
    good = value in ("runtime/default", "unconfined") or value.startswith(_LOCALHOST)
    if value and not good:
        wanted = f"write runtime/default, unconfined or {_LOCALHOST}PROFILE"
        message = f"invalid AppArmor profile name {quoted(value)}; {wanted}"
        site.report(TPL_ANNOTATION_VALUE, message, key)
    if site.pod.os == "windows":
        return
    whole = spec.get("securityContext", {}).get("appArmorProfile")
    for owner in owners:
        own = owner.get("securityContext", {}).get("appArmorProfile")
        if own is None and (whole is None or not _agrees(value, whole)):
            annotation(site, key, "securityContext.appArmorProfile", "is deprecated")
        # Kubernetes writes the annotation into the field of a container that has none.
        if own is not None or not good or value.strip() != value or value == _LOCALHOST:
            _match(site, key, value, whole if own is None else own)


def _match(site: Site, key: str, value: str, field: Raw | None) -> None:
    kind = field.get("type", "") if field else ""
    if field and kind in ("Localhost", *_KINDS.values()) and not _agrees(value, field):
        message = f"profiles in annotation and field must match, found {quoted(value)} here and type {kind} in the field"
        site.report(TPL_PROFILE_MATCH, message, key)


def _agrees(value: str, field: Raw) -> bool:
    if field.get("type") == "Localhost":
        return value == f"{_LOCALHOST}{field.get('localhostProfile')}"
    return value in _KINDS and _KINDS[value] == field.get("type")


def _named(spec: Raw, name: str) -> list[Raw]:
    """The containers of this name."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    return [each for each in containers if each.get("name", "") == name]
