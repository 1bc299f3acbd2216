"""Printer columns of the built-in kinds that Pumice's users look at."""

from collections.abc import Callable
from typing import Any

from pumice.api.durations import NOT_KNOWN, human_age
from pumice.embedded.resources import PrinterColumn
from pumice.embedded.storage import Obj, ResourceKey

Cell = Callable[[Obj, float], Any]
"""An object and the moment in, the cell out."""
Printer = tuple[tuple[PrinterColumn, Cell], ...]


def _name(obj: Obj, _moment: float) -> str:
    return str(obj["metadata"]["name"])


def _created(obj: Obj, moment: float) -> str:
    return human_age(obj["metadata"].get("creationTimestamp"), moment)


NAME = (PrinterColumn("Name", description="Name of the object.", format="name"), _name)
AGE = (PrinterColumn("Age", description="Time since the object was created."), _created)


def _column(name: str, read: Callable[[Obj], Any], type_: str = "string", wide: int = 0) -> Any:
    return (PrinterColumn(name, type=type_, priority=wide), lambda obj, _moment: read(obj))


def _at(*steps: str, missing: str = "") -> Callable[[Obj], Any]:
    def read(obj: Any) -> Any:
        for step in steps:
            obj = obj.get(step) if isinstance(obj, dict) else None
        return missing if obj is None or obj == "" else obj

    return read


def _statuses(pod: Obj) -> list[Obj]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def _pod_ready(pod: Obj) -> str:
    ready = sum(bool(each.get("ready")) for each in _statuses(pod))
    return f"{ready}/{len(pod['spec'].get('containers') or ())}"


def _pod_status(pod: Obj) -> str:
    """The one word that says most: how a container stands, else the pod's reason or phase."""
    status = pod.get("status") or {}
    text = status.get("reason") or status.get("phase") or ""
    if pod["spec"].get("schedulingGates") and not pod["spec"].get("nodeName"):
        text = "SchedulingGated"
    for container in reversed(_statuses(pod)):
        state = container.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason"):
            text = waiting["reason"]
        elif ended:
            text = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
    if pod["metadata"].get("deletionTimestamp") and status.get("phase") not in {
        "Succeeded",
        "Failed",
    }:
        text = "Terminating"
    return str(text)


def _pod_restarts(pod: Obj) -> str:
    return str(sum(each.get("restartCount", 0) for each in _statuses(pod)))


def _readiness_gates(pod: Obj) -> str:
    gates = pod["spec"].get("readinessGates") or []
    if not gates:
        return "<none>"
    conditions = (pod.get("status") or {}).get("conditions") or []
    true = {each.get("type") for each in conditions if each.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


def _node_status(node: Obj) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = [each.get("status") for each in conditions if each.get("type") == "Ready"]
    text = {"True": "Ready", "False": "NotReady"}.get(ready[0] if ready else "", "Unknown")
    unschedulable = (node.get("spec") or {}).get("unschedulable")
    return f"{text},SchedulingDisabled" if unschedulable else text


def _node_roles(node: Obj) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))
    return ",".join(roles) or "<none>"


def _node_address(type_: str) -> Callable[[Obj], str]:
    def read(node: Obj) -> str:
        for each in (node.get("status") or {}).get("addresses") or ():
            if each.get("type") == type_:
                return str(each.get("address"))
        return "<none>"

    return read


def _service_ports(service: Obj) -> str:
    texts = []
    for port in service["spec"].get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or "<none>"


def _selector(obj: Obj) -> str:
    selector = obj["spec"].get("selector") or {}
    return ",".join(f"{key}={selector[key]}" for key in sorted(selector)) or "<none>"


def _event_first_seen(event: Obj, moment: float) -> str:
    return human_age(event.get("firstTimestamp") or event.get("eventTime"), moment)


def _event_last_seen(event: Obj, moment: float) -> str:
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp")
    return human_age(last, moment) if last else _event_first_seen(event, moment)


def _event_count(event: Obj) -> str:
    series = event.get("series") or {}
    return str(series.get("count") or event.get("count") or 1)


def _event_object(event: Obj) -> str:
    involved = event.get("involvedObject") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def _event_source(event: Obj) -> str:
    source = event.get("source") or {}
    parts = (source.get("component") or event.get("reportingComponent"), source.get("host"))
    return ", ".join(part for part in parts if part)


def _job_status(job: Obj) -> str:
    """As the API server words it, without what is never here: a Job that is about to end."""
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    conditions = (job.get("status") or {}).get("conditions") or ()
    ended = [each["type"] for each in conditions if each.get("status") == "True"]
    if ended:
        return str(ended[0])
    return "Suspended" if job["spec"].get("suspend") else "Running"


def _job_completions(job: Obj) -> str:
    done = (job.get("status") or {}).get("succeeded") or 0
    spec = job["spec"]
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism", 1)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _count(field: str) -> Callable[[Obj], int]:
    return lambda obj: len(obj.get(field) or ())


def _crd_created(crd: Obj) -> str:
    return str(crd["metadata"].get("creationTimestamp", ""))


PRINTERS: dict[ResourceKey, Printer] = {
    ("", "pods"): (
        NAME,
        _column("Ready", _pod_ready),
        _column("Status", _pod_status),
        _column("Restarts", _pod_restarts),
        AGE,
        _column("IP", _at("status", "podIP", missing="<none>"), wide=1),
        _column("Node", _at("spec", "nodeName", missing="<none>"), wide=1),
        _column("Nominated Node", _at("status", "nominatedNodeName", missing="<none>"), wide=1),
        _column("Readiness Gates", _readiness_gates, wide=1),
    ),
    ("", "nodes"): (
        NAME,
        _column("Status", _node_status),
        _column("Roles", _node_roles),
        AGE,
        _column("Version", _at("status", "nodeInfo", "kubeletVersion")),
        _column("Internal-IP", _node_address("InternalIP"), wide=1),
        _column("External-IP", _node_address("ExternalIP"), wide=1),
        _column("OS-Image", _at("status", "nodeInfo", "osImage", missing=NOT_KNOWN), wide=1),
        _column(
            "Kernel-Version", _at("status", "nodeInfo", "kernelVersion", missing=NOT_KNOWN), wide=1
        ),
        _column(
            "Container-Runtime",
            _at("status", "nodeInfo", "containerRuntimeVersion", missing=NOT_KNOWN),
            wide=1,
        ),
    ),
    ("", "namespaces"): (NAME, _column("Status", _at("status", "phase")), AGE),
    ("", "services"): (
        NAME,
        _column("Type", _at("spec", "type")),
        _column("Cluster-IP", _at("spec", "clusterIP", missing="<none>")),
        _column("External-IP", _at("spec", "externalName", missing="<none>")),
        _column("Port(s)", _service_ports),
        AGE,
        _column("Selector", _selector, wide=1),
    ),
    ("", "events"): (
        (PrinterColumn("Last Seen"), _event_last_seen),
        _column("Type", _at("type")),
        _column("Reason", _at("reason")),
        _column("Object", _event_object),
        _column("Subobject", _at("involvedObject", "fieldPath"), wide=1),
        _column("Source", _event_source, wide=1),
        _column("Message", lambda event: str(event.get("message", "")).strip()),
        (PrinterColumn("First Seen", priority=1), _event_first_seen),
        _column("Count", _event_count, wide=1),
        (PrinterColumn("Name", format="name", priority=1), _name),
    ),
    ("", "configmaps"): (NAME, _column("Data", _count("data"), "string"), AGE),
    ("", "secrets"): (
        NAME,
        _column("Type", _at("type")),
        _column("Data", _count("data"), "string"),
        AGE,
    ),
    ("apps", "replicasets"): (
        NAME,
        _column("Desired", _at("spec", "replicas", missing="1"), "integer"),
        _column("Current", _at("status", "replicas", missing="0"), "integer"),
        _column("Ready", _at("status", "readyReplicas", missing="0"), "integer"),
        AGE,
    ),
    ("batch", "jobs"): (
        NAME,
        _column("Status", _job_status),
        _column("Completions", _job_completions),
        AGE,
    ),
    ("coordination.k8s.io", "leases"): (
        NAME,
        _column("Holder", _at("spec", "holderIdentity")),
        AGE,
    ),
    ("scheduling.k8s.io", "priorityclasses"): (
        NAME,
        _column("Value", _at("value"), "integer"),
        _column("Global-Default", lambda obj: bool(obj.get("globalDefault")), "boolean"),
        AGE,
        _column("PreemptionPolicy", _at("preemptionPolicy", missing="PreemptLowerPriority")),
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (
        NAME,
        _column("Created At", _crd_created, "date"),
    ),
}
