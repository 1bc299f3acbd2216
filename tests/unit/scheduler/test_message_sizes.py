"""Messages of conditions are bounded, whatever pods and quotas name."""

import msgspec

from pumice.api.messages import LONGEST, LONGEST_LIST
from pumice.api.pods import Pod
from pumice.scheduler import ClusterState, Reason
from pumice.scheduler.explain.deficits import Deficit, deficit_text, insufficient
from pumice.scheduler.explain.nearest import NearestNode
from pumice.scheduler.explain.sentences import FitFailure, Refusals, fit_summary, unavailable
from pumice.scheduler.model.shapes import Need
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.results import PodVerdict
from tests.kit.builders import pod

MANY = 30_000


def test_reasons_and_verdicts_are_cut() -> None:
    reason = Reason("NotEnoughResources", "x" * 399_388, plain="y" * 399_388)
    assert [len(each.encode()) for each in (reason.message, reason.plain)] == [LONGEST] * 2
    assert reason.summary.endswith("…")
    assert len(PodVerdict("Unschedulable", "ä" * 399_388).message.encode()) <= LONGEST


def test_of_many_resources_the_first_are_named() -> None:
    counts = {f"Insufficient example.com/r{each}": 1 for each in range(MANY)}
    message = unavailable(3, counts)
    assert message.startswith("0/3 nodes are unavailable: 1 Insufficient example.com/r0, 1 ")
    assert message.endswith(" more.")
    assert len(message) <= LONGEST_LIST + 64
    deficits = [Deficit(f"example.com/r{each}", 0, 1, 2) for each in range(MANY)]
    for text in (deficit_text(deficits), insufficient(deficits)):
        assert len(text) <= LONGEST_LIST
        assert text.endswith(" more")
    needs = [Need(MANY + each, 1, f"example.com/r{each}") for each in range(MANY)]
    failure = FitFailure(Refusals(3, counts, {}), NearestNode(needs, nodes=3))
    summary = fit_summary(failure, 1)
    assert summary.startswith("needs 1 example.com/r0, 1 example.com/r1, ")
    assert len(summary) <= 3 * LONGEST_LIST


def test_of_many_scheduling_gates_a_pod_keeps_the_first() -> None:
    manifest = pod("p", schedulingGates=[{"name": f"example.com/g{each}"} for each in range(MANY)])
    read = msgspec.convert(manifest, Pod)
    task = TaskInfo(read, ClusterState().shapes.intern(read))
    assert task.gates.startswith("example.com/g0, example.com/g1, ")
    assert task.gates.endswith(f", and {MANY - task.gates.count('/')} more")
    assert len(task.gates) <= 256
