"""Pods of other controllers that name job plugins: admission wires them.

A pod that names plugins and cannot be wired is refused: without its variables it could not find its peers and would
block resources. Its controller tries again and reports the reason in an event.
"""

from typing import Any

from pumice.api import keys
from pumice.api.kinds import JOB
from pumice.api.meta import Raw
from pumice.api.raw import object_in, objects_in, text_in
from pumice.plugins import PluginError
from pumice.plugins.other_owners import Owner, OwnerWirings, PodPlace, RequestError, place
from pumice.webhook.patches import Patch, escape
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftPod
from pumice.webhook.rules.rule import stricter, warned

POD_PLUGINS_FORM = stricter(
    "POD-PLUGINS-FORM",
    f"the annotation {keys.PLUGINS} is valid and fits the pods of its owner",
    "Without the variables of its plugins a pod cannot find its peers.",
    "annotations: {pumice.dev/plugins: '{\"pytroch\": []}'}",
)
POD_PLUGINS_OWNER = stricter(
    "POD-PLUGINS-OWNER",
    f"a pod with the annotation {keys.PLUGINS} is one of an Indexed Job, a JobSet or a LeaderWorkerSet",
    "Plugins need the index and the number of pods; other pods have neither.",
    "annotations: {pumice.dev/plugins: pytorch}, ownerReferences: [{kind: ReplicaSet, name: web}]",
    compares=True,
)
POD_PLUGINS_UNKNOWN = stricter(
    "POD-PLUGINS-UNKNOWN",
    f"the owner of a pod with the annotation {keys.PLUGINS} is there, and the pod is one of those it wants",
    "The number of pods is taken from the owner; its controller creates the pod again later.",
    "a pod of index 8 of a Job that has 8",
    reason="FieldValueNotFound",
)
POD_PLUGINS_VOLCANO = warned(
    "POD-PLUGINS-VOLCANO",
    f"a pod of a Volcano Job does not name plugins by {keys.PLUGINS}",
    "Its Job names them in spec.plugins; the annotation has no effect.",
    "annotations: {pumice.dev/plugins: pytorch} in a task's template",
)

POD_PLUGINS_DOUBT = warned(
    "POD-PLUGINS-DOUBT",
    "the plugins of an Indexed Job, a JobSet or a LeaderWorkerSet have the tasks and arguments that they need",
    "Its pods start, and probably wait for each other forever; `pumice lint` and an event of the owner say so.",
    "completions: 4, parallelism: 2, annotations: {pumice.dev/plugins: pytorch}",
)

_PATH = f"metadata.annotations[{keys.PLUGINS}]"
_OWNERS_PATH = f"spec.template.{_PATH}"
_IN_VAIN = "has no effect here: name plugins in spec.plugins of the Job"


def wants_plugins(pod: DraftPod) -> bool:
    """True if a pod names plugins that are not applied yet."""
    annotations = pod.metadata.annotations
    return annotations is not None and keys.PLUGINS in annotations and keys.WIRED not in annotations


def wired_pod(case: Case, pod: Raw) -> None:
    """Add the edits of plugins to the case's patch, for a pod that names plugins."""
    if _is_volcanos(pod):
        case.report(POD_PLUGINS_VOLCANO, _PATH, _IN_VAIN)
        return
    found = place(pod)
    if found is None or found.index is None:
        this = "one that has no index" if found else "one that none of these controllers made"
        message = f"names plugins for a pod of an Indexed Job, a JobSet or a LeaderWorkerSet, and this is {this}"
        case.report(POD_PLUGINS_OWNER, _PATH, message)
        return
    namespace = text_in(pod["metadata"], "namespace")
    key = found.kind, namespace or case.namespace, found.owner
    owner, wirings = case.owner(key), _wirings(case)
    try:
        wired = wirings.find(owner, found) if owner is not None else None
        if wired is not None:
            for error in wired.errors:
                case.report(POD_PLUGINS_FORM, _PATH, error)
            if not case.errors:
                _change(case.patch, "", pod, wirings.pod(wired, found, pod))
            return
    except (RequestError, PluginError) as error:
        case.report(POD_PLUGINS_FORM, _PATH, str(error))
        return
    what = f'{found.kind.kind} "{found.owner}"'
    message = f"cannot be wired: there is no {what}, which has the number of pods"
    if owner is not None:
        case.missing_owners.append(key)  # it may have changed a moment ago
        message = f"cannot be wired: {what} has no pod {_described(found)} with plugins"
    case.report(POD_PLUGINS_UNKNOWN, _PATH, message)


def wired_owner(case: Case, owner: Owner) -> None:
    """Check the plugins of an owner, as its pods would use them.

    API servers do not call the webhook for owners; this is for the command line.
    """
    try:
        known = _wirings(case).ends(owner)
    except RequestError as error:
        case.report(POD_PLUGINS_FORM, _OWNERS_PATH, str(error))
        return
    for error_text in dict.fromkeys(each for wired in known for each in wired.errors):
        case.report(POD_PLUGINS_FORM, _OWNERS_PATH, error_text)
    for doubt in dict.fromkeys(each for wired in known for each in wired.doubts):
        case.report(POD_PLUGINS_DOUBT, _OWNERS_PATH, doubt)


def volcano_template(case: Case, path: str, template: Raw) -> None:
    """Warn about a template of a Volcano Job that has the annotation for plugins of other owners."""
    if keys.PLUGINS in object_in(object_in(template, "metadata"), "annotations"):
        case.report(POD_PLUGINS_VOLCANO, f"{path}.{_PATH}", _IN_VAIN)


def _wirings(case: Case) -> OwnerWirings:
    return case.wirings or OwnerWirings(case.plugins, max_pods=case.settings.max_pods_per_job)


def _described(found: PodPlace) -> str:
    if found.group:
        return f"{found.group}-{found.job}-{found.index}"
    return f"{found.number}-{found.index}" if found.number else str(found.index)


def _is_volcanos(pod: Raw) -> bool:
    return any(
        (each.get("apiVersion"), each.get("kind")) == (JOB.api_version, JOB.kind)
        for each in objects_in(pod["metadata"], "ownerReferences")
    )


def _change(patch: Patch, pointer: str, before: Any, after: Any) -> None:
    """Set new and changed values, at any depth; plugins remove nothing."""
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in after.items():
            _change(patch, f"{pointer}/{escape(key)}", before.get(key), value)
    elif (names := _names(after)) is not None and names == _names(before):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            _change(patch, f"{pointer}/{position}", old, new)
    elif before != after:
        patch.set(pointer, after)


def _names(found: Any) -> list[Any] | None:
    """Names of the objects of a list; None if the value is not a list of objects."""
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        return [each.get("name") for each in found]
    return None
