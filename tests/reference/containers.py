"""Drawn containers: requests of all kinds, sidecars, pods whose resources stand in the pod, and pods that are being resized."""

from typing import Any

from tests.reference.chances import Chances

Raw = dict[str, Any]

_IMAGE = "registry.example.com/app:1"
_ADDRESSES = (None, None, "0.0.0.0", "127.0.0.1", "10.0.0.7")

RUNTIME_CLASSES: list[Raw] = [
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "sandbox",
        **rest,
    }
    for name, rest in (
        ("plain", {}),
        ("heavy", {"overhead": {"podFixed": {"cpu": "500m", "memory": "700Mi"}}}),
        (
            "placed",
            {
                "overhead": {"podFixed": {"cpu": "10m"}},
                "scheduling": {
                    "nodeSelector": {"sandbox": "yes"},
                    "tolerations": [
                        {"key": "dedicated", "operator": "Equal", "value": "batch"},
                    ],
                },
            },
        ),
    )
]


def containers(chances: Chances, *, is_rich: bool) -> Raw:
    """The part of a pod's spec that says what it asks for.

    Args:
        chances: Where choices come from.
        is_rich: Whether init containers, overhead, extended resources and the like are drawn too.
    """
    if not is_rich:
        return {"containers": [_container(chances, "c0", chances.one((0.0, 1.0)))]}
    spec: Raw = {
        "containers": [
            _container(chances, f"c{number}", 0.7) for number in range(chances.number(1, 3))
        ]
    }
    if chances.happens(0.4):
        spec["initContainers"] = [
            _init_container(chances, f"i{number}") for number in range(chances.number(1, 3))
        ]
    if chances.happens(0.2):
        spec["runtimeClassName"] = chances.one(RUNTIME_CLASSES)["metadata"]["name"]
    if chances.happens(0.15):
        _as_a_whole(chances, spec)
    return spec


def ports(chances: Chances, spec: Raw) -> None:
    """Draw host ports for a pod."""
    if chances.happens(0.15):
        spec["hostNetwork"] = True
    holders = spec["containers"] + [
        each for each in spec.get("initContainers", ()) if "restartPolicy" in each
    ]
    taken: set[tuple[int, str]] = set()
    for container in chances.some(holders, 1, 2):
        container["ports"] = []
        for port in [_port(chances) for _ in range(chances.number(1, 2))]:
            key = (port["hostPort"], port.get("protocol", "TCP"))
            if key in taken:
                continue
            taken.add(key)
            if spec.get("hostNetwork"):
                port["containerPort"] = port["hostPort"]
            container["ports"].append(port)


def resized(chances: Chances, pod: Raw) -> None:
    """Let the status of a running pod say that it is being resized: what runs differs from what is asked for."""
    names = ("cpu", "memory")
    statuses = []
    for container in pod["spec"]["containers"]:
        if not chances.happens(0.8):
            continue
        status = {"name": container["name"], "image": _IMAGE, "imageID": "", "restartCount": 0}
        status |= {"ready": True, "started": True}
        if chances.happens(0.9):
            status["resources"] = {"requests": _cpu_and_memory(chances, names)}
            if chances.happens(0.8):
                status["allocatedResources"] = _cpu_and_memory(chances, names)
        statuses.append(status)
    pod["status"] = {"phase": "Running", "containerStatuses": statuses}
    if chances.happens(0.5):
        pod["status"]["conditions"] = [
            {
                "type": "PodResizePending",
                "status": "True",
                "reason": chances.one(("Infeasible", "Deferred")),
            }
        ]
    whole = pod["spec"].get("resources")
    if whole and chances.happens(0.7):
        pod["status"]["resources"] = {"requests": _cpu_and_memory(chances, names)}
        pod["status"]["allocatedResources"] = _cpu_and_memory(chances, names)


def _container(chances: Chances, name: str, share: float) -> Raw:
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    if chances.happens(share):
        requests |= _cpu_and_memory(chances, chances.some(("cpu", "memory"), 1, 2))
    if share < 1 and chances.happens(0.15):
        requests["ephemeral-storage"] = chances.one(("1Gi", "15Gi"))
    if share < 1 and chances.happens(0.15):
        requests["example.com/gpu"] = limits["example.com/gpu"] = chances.one(("0", "1", "2", "3"))
    if share < 1 and requests and chances.happens(0.1) and requests.keys() & {"cpu", "memory"}:
        requests["hugepages-2Mi"] = limits["hugepages-2Mi"] = chances.one(("32Mi", "128Mi"))
    if share < 1 and chances.happens(0.1):
        limits["cpu"] = chances.one(("3", "5"))
    container: Raw = {"name": name, "image": _IMAGE}
    resources = {key: each for key, each in (("requests", requests), ("limits", limits)) if each}
    return container | ({"resources": resources} if resources else {})


def _init_container(chances: Chances, name: str) -> Raw:
    container = _container(chances, name, 0.8)
    return container | ({"restartPolicy": "Always"} if chances.happens(0.5) else {})


def _as_a_whole(chances: Chances, spec: Raw) -> None:
    """Let the resources stand in the pod: no less than what its containers ask for, of which nothing remains."""
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        named = container.get("resources", {})
        for amounts in named.values():
            for name in ("cpu", "memory", "hugepages-2Mi"):
                amounts.pop(name, None)
    requests = _cpu_and_memory(chances, chances.some(("cpu", "memory"), 1, 2))
    spec["resources"] = {"requests": requests}
    if chances.happens(0.3):
        spec["resources"]["limits"] = {"memory": "12Gi"}


def _cpu_and_memory(chances: Chances, names: Any) -> dict[str, str]:
    drawn = {
        "cpu": chances.one(("100m", "500m", "1", "1500m", "2", "3")),
        "memory": chances.one(("128Mi", "1Gi", "1500M", "3Gi", "5Gi", "1e9")),
    }
    return {name: drawn[name] for name in names}


def _port(chances: Chances) -> Raw:
    port: Raw = {"containerPort": 80, "hostPort": chances.one((8080, 8081, 9000))}
    if chances.happens(0.5):
        port["protocol"] = chances.one(("TCP", "UDP", "SCTP"))
    address = chances.one(_ADDRESSES)
    return port if address is None else port | {"hostIP": address}
