"""What task-topology says of every pod before it is placed: the pod, the scores, the node taken."""

from dataclasses import dataclass, field
from typing import Any

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.buckets.buckets import Buckets
from pumice.scheduler.model.axis import Floats
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.plugins.task_topology import SPEC, TaskTopologyPlugin
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenarios import Scenario, config_text, with_plugins


@dataclass
class Step:
    """One pod's turn."""

    pod: str
    scores: dict[str, float]
    node: str = ""


@dataclass
class PlacementRecord:
    """How a job was placed.

    Attributes:
        buckets: Pods of each bucket when the session opened.
        weights: Weight of each bucket then.
        largest: Pods in the largest.
        steps: Turns in their order.
    """

    buckets: list[list[str]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    largest: int = 0
    steps: list[Step] = field(default_factory=list)

    @property
    def order(self) -> list[str]:
        """Pods in the order in which they had their turn."""
        return [step.pod for step in self.steps]

    def of(self, pod: str) -> Step:
        """The turn of a pod."""
        return next(step for step in self.steps if step.pod == pod)

    @property
    def placement(self) -> dict[str, list[str]]:
        """Pods on each node, in the order of placing."""
        nodes: dict[str, list[str]] = {}
        for step in self.steps:
            nodes.setdefault(step.node, []).append(step.pod)
        return nodes


def topology_job(
    tasks: dict[str, int],
    nodes: dict[str, float],
    *,
    affinity: str = "",
    anti: str = "",
    order: str = "",
    bound: dict[str, str] | None = None,
    requests: dict[str, list[Any]] | None = None,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A case: one job `job` of these tasks, each pod 1 cpu and 1 Gi, on nodes with so many free cpus."""
    notes = {
        f"volcano.sh/task-topology-{name}": value
        for name, value in (("affinity", affinity), ("anti-affinity", anti), ("task-order", order))
        if value
    }
    used = {node: sum(1 for each in (bound or {}).values() if each == node) for node in nodes}
    pods = []
    for role, count in tasks.items():
        for index in range(count):
            name = f"{role}-{index}"
            node = (bound or {}).get(name, "")
            cpu, memory = (requests or {}).get(role, [1, "1Gi"])
            phase = "Running" if node else "Pending"
            pods.append(["ns", f"job-{name}", node, phase, cpu, memory, "job", {"role": role}])
    return {
        "nodes": [[name, cpu + used[name], "512Gi"] for name, cpu in nodes.items()],
        "podgroups": [
            [
                "ns",
                "job",
                "default",
                sum(tasks.values()),
                "Inqueue",
                {"annotations": notes | (annotations or {})},
            ]
        ],
        "pods": pods,
    }


def record_placement(
    case: dict[str, Any],
    *,
    arguments: dict[str, Any] | None = None,
    others: tuple[Any, ...] = (),
) -> PlacementRecord:
    """Place the job of a case with the real plugin and write down what it said."""
    record = PlacementRecord()

    class Recorded(TaskTopologyPlugin):
        def open(self, session: SessionView, register: Registrar) -> None:
            super().open(session, register)
            for buckets in self._jobs.values():
                self._remember(buckets)

        def _remember(self, buckets: Buckets) -> None:
            record.buckets = [[_short(pod) for pod in bucket.pending] for bucket in buckets.all]
            record.weights = [bucket.weight for bucket in buckets.all]
            record.largest = buckets.largest

        def score(self, task: TaskInfo, rows: Rows) -> Floats | None:
            scores = super().score(task, rows)
            values = [0.0] * len(rows) if scores is None else scores.tolist()
            names = self._session.node_names
            record.steps.append(Step(_short(task.key), dict(zip(names, values, strict=True))))
            return scores

    spec = PluginSpec(SPEC.name, SPEC.summary, Recorded, SPEC.arguments)
    text = config_text(
        [["gang", *others, {"task-topology": None, "args": arguments or {}}]], ["allocate"]
    )
    scenario = Scenario(case, load_config(text, with_plugins(builtin_registry(), spec)))
    result = scenario.cycle()
    for step in record.steps:
        step.node = result.binds.get(f"ns/job-{step.pod}", "")
    return record


def _short(key: str) -> str:
    return key.removeprefix("ns/job-")
