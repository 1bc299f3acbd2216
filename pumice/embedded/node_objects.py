"""Objects that a kubelet writes: its Node, and events about its pods; and such events about owners of pods."""

from contextlib import suppress

from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Obj
from pumice.embedded.store import Store


def warn(store: Store, obj: Obj, reason: str, message: str, moment: str, component: str) -> None:
    """Write an event of type `Warning` about a pod, or another object with a namespace."""
    meta = obj["metadata"]
    about = {key: meta[key] for key in ("name", "namespace", "uid")}
    event: Obj = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
        "involvedObject": about | {"apiVersion": obj["apiVersion"], "kind": obj["kind"]},
        "type": "Warning",
        "reason": reason,
        "message": message[:1024],
        "source": {"component": component},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
    with suppress(ApiStatusError):  # as in a namespace that is being deleted
        store.create(event)


def ready_node(
    name: str,
    capacity: dict[str, str],
    labels: dict[str, str],
    taints: list[Obj],
    moment: str,
    address: str,
    kubelet: str = "simulated",
    architecture: str = "amd64",
) -> Obj:
    """A Node that is ready, as its kubelet registers it."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
                **labels,
            },
        },
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": f"{kubelet} node",
                    "lastHeartbeatTime": moment,
                    "lastTransitionTime": moment,
                }
            ],
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "kubeletVersion": kubelet,
                "operatingSystem": "linux",
                "architecture": architecture,
            },
        },
    }
