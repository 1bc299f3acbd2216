"""Files that Kubernetes itself puts into a volume: from ConfigMaps, Secrets and the pod."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.downward_api import field_ref, resource_field_ref
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import quoted, relative_path, text

__all__ = ["RULES", "config_files", "downward_files", "file_mode", "file_path"]

TPL_VOLUME_FILE = Rule(
    "TPL-VOLUME-FILE",
    "files in volumes have relative paths that do not lead upwards, and modes from 0 to 0777",
    "Kubernetes refuses the pod otherwise.",
    "configMap: {name: conf, items: [{key: a, path: ../a}]}",
)
TPL_VOLUME_FIELD = Rule(
    "TPL-VOLUME-FIELD",
    "a file about the pod holds one field of it, or one resource of a container",
    "Kubernetes refuses the pod otherwise.",
    "downwardAPI: {items: [{path: name, fieldRef: {fieldPath: spec.nodeName}}]}",
)

RULES = (TPL_VOLUME_FILE, TPL_VOLUME_FIELD)

_LARGEST_MODE = 0o777
_POD_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
"""What a file can hold of its pod, besides single labels and annotations."""


def file_mode(site: Site, holder: Raw, name: str, field: str) -> None:
    """Check the permissions of a file."""
    mode = holder.get(name, 0)
    if not 0 <= mode <= _LARGEST_MODE:
        message = f"must be from 0 to 0777 (511), found {mode}"
        site.report(TPL_VOLUME_FILE, message, f"{field}.{name}")


def file_path(site: Site, holder: Raw, name: str, field: str) -> None:
    """Check where in the volume a file is; names that begin with two dots are Kubernetes' own.

    Args:
        site: Where to report.
        holder: What says it.
        name: In which member.
        field: Where the holder is, from the site on.
    """
    path = text(site, TPL_VOLUME_FILE, holder.get(name), f"{field}.{name}")
    relative_path(site, TPL_VOLUME_FILE, path, f"{field}.{name}")
    if path.startswith("..") and ".." not in path.split("/"):
        message = f'must not start with "..", found {quoted(path)}'
        site.report(TPL_VOLUME_FILE, message, f"{field}.{name}")


def config_files(site: Site, source: Raw, field: str) -> list[str]:
    """Check the files that come from a ConfigMap or a Secret.

    Returns:
        Their paths.
    """
    file_mode(site, source, "defaultMode", field)
    for index, item in entries(source.get("items")):
        where = f"{field}.items[{index}]"
        text(site, TPL_VOLUME_FILE, item.get("key"), f"{where}.key")
        file_path(site, item, "path", where)
        file_mode(site, item, "mode", where)
    return [item.get("path", "") for _, item in entries(source.get("items"))]


def downward_files(site: Site, source: Raw, field: str) -> list[str]:
    """Check the files that hold fields of the pod.

    Returns:
        Their paths.
    """
    for index, item in entries(source.get("items")):
        where = f"{field}.items[{index}]"
        file_path(site, item, "path", where)
        file_mode(site, item, "mode", where)
        refs = [name for name in ("fieldRef", "resourceFieldRef") if name in item]
        if len(refs) != 1:
            message = (
                f"must have fieldRef or resourceFieldRef, found {'both' if refs else 'neither'}"
            )
            site.report(TPL_VOLUME_FIELD, message, where)
        if "fieldRef" in item:
            field_ref(site, TPL_VOLUME_FIELD, item["fieldRef"], _POD_FIELDS, f"{where}.fieldRef")
        elif "resourceFieldRef" in item:
            name = f"{where}.resourceFieldRef"
            ref = item["resourceFieldRef"]
            text(site, TPL_VOLUME_FIELD, ref.get("containerName"), f"{name}.containerName")
            resource_field_ref(site, TPL_VOLUME_FIELD, ref, name)
    return [item.get("path", "") for _, item in entries(source.get("items"))]
