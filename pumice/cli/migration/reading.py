"""The objects of a Volcano cluster, from an API server or from files, and the scheduler's configuration among them.

What the user may not read of all namespaces is read of the context's namespace, or left out; the result says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from pumice.api.kinds import (
    CONFIG_MAP,
    CRON_JOB,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)
from pumice.api.meta import Raw
from pumice.cli.files.manifests import Manifest, Source, named, read

if TYPE_CHECKING:
    from pumice.cluster.client import Client

_NUMA_TOPOLOGY = Kind("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", False)
"""Volcano's kind for the NUMA nodes of a Node, which Pumice does not read."""

_KINDS = (
    *(QUEUE, JOB, CRON_JOB, JOB_FLOW, JOB_TEMPLATE, POD_GROUP, POD),
    *(PRIORITY_CLASS, HYPER_NODE, _NUMA_TOPOLOGY),
)
_WITHOUT_JOB = "!volcano.sh/job-name"
"""Label selector of pods that no Job of Volcano has made."""

_NAMESPACE, _CONFIG_MAP = "volcano-system", "volcano-scheduler-configmap"
_FILE = "volcano-scheduler.conf"


@dataclass(slots=True)
class VolcanoState:
    """What was read.

    Attributes:
        manifests: The objects.
        config_map: The ConfigMap with the scheduler's configuration, if there is one.
        not_allowed: What the user may not read.
    """

    manifests: list[Manifest] = field(default_factory=list)
    config_map: Manifest | None = None
    not_allowed: list[str] = field(default_factory=list)


def of_files(files: Sequence[str]) -> VolcanoState:
    """Read files, such as `kubectl get … -o yaml` writes them.

    Raises:
        UserError: A file cannot be read.
    """
    found = VolcanoState()
    for each in named(read(files, may_be_empty=True)):
        if each.object["kind"] != CONFIG_MAP.kind:
            found.manifests.append(each)
        elif _is_configuration(each) and found.config_map is None:
            found.config_map = each
    return found


def _is_configuration(config_map: Manifest) -> bool:
    data = config_map.object.get("data")
    return config_map.name == _CONFIG_MAP or (isinstance(data, dict) and _FILE in data)


async def of_cluster(client: "Client", *, config_map: bool) -> VolcanoState:
    """Read a cluster.

    Raises:
        ApiError: The API server cannot be reached.
    """
    from pumice.cluster.errors import Forbidden, NotFound

    found = VolcanoState()
    for kind in _KINDS:
        await _read(client, kind, found)
    if config_map:
        try:
            raw = await client.get(CONFIG_MAP, _CONFIG_MAP, _NAMESPACE)
            found.config_map = _manifest(raw, CONFIG_MAP)
        except NotFound:
            pass
        except Forbidden:
            found.not_allowed.append(f"ConfigMap {_NAMESPACE}/{_CONFIG_MAP}")
    return found


async def _read(client: "Client", kind: Kind, found: VolcanoState) -> None:
    """Read a kind in all namespaces, or else in that of the context."""
    from pumice.cluster.errors import Forbidden, InvalidName, NotFound

    selector = _WITHOUT_JOB if kind == POD else None
    own = client.connection.namespace
    for namespace in (None, own) if kind.namespaced else (None,):
        try:
            items = (await client.list(kind, namespace, label_selector=selector))["items"]
        except InvalidName:
            raise
        except NotFound:
            return  # the kind is not installed
        except Forbidden:
            continue
        found.manifests += [_manifest(each, kind) for each in items]
        if namespace is not None:
            found.not_allowed.append(f"{kind.resource} of other namespaces than {own}")
        return
    found.not_allowed.append(kind.resource)


def _manifest(raw: Raw, kind: Kind) -> Manifest:
    """An object of a list, which does not say its kind."""
    return Manifest(kind.type_meta | raw, Source("cluster"))


def config_map_text(config_map: Manifest) -> str:
    """A ConfigMap as text that the reader of configurations takes."""
    return msgspec.json.encode(config_map.object).decode()
