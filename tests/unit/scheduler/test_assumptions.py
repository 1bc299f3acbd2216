"""What a cycle decided counts until the API server shows or refuses it, whatever older events say."""

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.pods import Pod
from pumice.scheduler import ClusterState
from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.waiting.parked import Cause, Parked
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import node, pod, pod_group

KEY = "ns/p"
GROUP = "ns/g"


@pytest.fixture
def state() -> ClusterState:
    """One node and one gang."""
    state = ClusterState()
    state.set_node(node(["n1", 4, "8Gi"]))
    state.set_pod_group(shown_group(10))
    return state


def shown_pod(
    version: int, node_name: str = "", phase: str = "Pending", uid: str = "u1", **options: Any
) -> Pod:
    """The pod as the API server shows it at a resourceVersion."""
    found = pod(["ns", "p", node_name, phase, 1, "1Gi", "g", options])
    meta = replace(found.metadata, uid=uid, resource_version=str(version))
    return replace(found, metadata=meta)


def shown_group(
    version: int, phase: str = "Pending", uid: str = "g1", minimum: int = 1
) -> PodGroup:
    """The PodGroup as the API server shows it at a resourceVersion."""
    found = pod_group(["ns", "g", "default", minimum, phase])
    meta = replace(found.metadata, uid=uid, resource_version=str(version))
    return replace(found, metadata=meta)


def bind(state: ClusterState) -> None:
    """Decide to bind the pod to n1, as a committed statement does."""
    task = state.tasks[KEY]
    state.jobs[GROUP].move(task, SchedulingStatus.BINDING)
    state.nodes.add(task, state.nodes.records["n1"])
    state.pods.assume([KEY])


def evict(state: ClusterState) -> None:
    """Decide to evict the pod, as a committed statement does."""
    task = state.tasks[KEY]
    record = state.nodes.records[task.node]
    state.nodes.discard(task)
    state.jobs[GROUP].move(task, SchedulingStatus.RELEASING)
    state.nodes.add(task, record)
    state.pods.assume([KEY])


def standing(state: ClusterState) -> tuple[SchedulingStatus, str]:
    task = state.tasks[KEY]
    return task.status, task.node


# -- pods ------------------------------------------------------------------------------------


def test_an_assumed_binding_outlives_events_of_the_pod_that_waits(state: ClusterState) -> None:
    state.set_pod(shown_pod(20))
    bind(state)
    state.set_pod(shown_pod(21, labels={"a": "b"}))
    assert standing(state) == (SchedulingStatus.BINDING, "n1")
    state.set_pod(shown_pod(22, "n1"))
    assert standing(state) == (SchedulingStatus.BOUND, "n1")
    assert not state.pods.forget(KEY, "u1"), "a confirmed binding cannot be taken back"


def test_an_older_event_does_not_undo_a_binding_that_was_read(state: ClusterState) -> None:
    state.set_pod(shown_pod(20))
    bind(state)
    state.set_pod(shown_pod(23, "n1"))
    before, version = dump(state), state.parked.version
    assert not state.set_pod(shown_pod(22))
    assert (dump(state), state.parked.version) == (before, version)


def test_versions_are_numbers(state: ClusterState) -> None:
    state.set_pod(shown_pod(99))
    assert state.set_pod(shown_pod(100, "n1"))
    assert standing(state) == (SchedulingStatus.BOUND, "n1")


def test_an_event_without_changes_still_counts_as_the_latest(state: ClusterState) -> None:
    state.set_pod(shown_pod(20))
    assert not state.set_pod(shown_pod(25))
    assert not state.set_pod(shown_pod(24, "n1"))
    assert standing(state) == (SchedulingStatus.PENDING, "")


@pytest.mark.parametrize("phase", ["Running", "Unknown", "Pending"])
def test_an_assumed_eviction_outlives_status_events(state: ClusterState, phase: str) -> None:
    state.set_pod(shown_pod(20, "n1", "Running"))
    evict(state)
    state.set_pod(shown_pod(21, "n1", phase, labels={"a": "b"}))
    assert standing(state) == (SchedulingStatus.RELEASING, "n1")
    columns = dump(state)["nodes"]["n1"]
    assert columns["used"]["cpu"] == columns["releasing"]["cpu"] == 1000


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (shown_pod(21, "n1", "Running", deleting=True), SchedulingStatus.RELEASING),
        (shown_pod(21, "n1", "Failed"), SchedulingStatus.FAILED),
        (shown_pod(21, "n1", "Succeeded"), SchedulingStatus.SUCCEEDED),
    ],
)
def test_an_assumed_eviction_ends_with_what_the_pod_shows(
    state: ClusterState, event: Pod, status: SchedulingStatus
) -> None:
    state.set_pod(shown_pod(20, "n1", "Running"))
    evict(state)
    state.set_pod(event)
    assert standing(state) == (status, "n1")
    assert not state.pods.forget(KEY, "u1")


def test_a_refused_eviction_restores_the_pod_as_it_is_shown_now(state: ClusterState) -> None:
    state.set_pod(shown_pod(20, "n1", "Pending"))
    evict(state)
    state.set_pod(shown_pod(21, "n1", "Running"))
    assert state.pods.forget(KEY, "u1")
    assert standing(state) == (SchedulingStatus.RUNNING, "n1")
    assert "releasing" not in {k for k, v in dump(state)["nodes"]["n1"].items() if v}


def test_a_refused_eviction_of_another_schedulers_pod_is_taken_back() -> None:
    state = ClusterState()
    state.set_node(node(["n1", 4, "8Gi"]))
    state.set_pod(shown_pod(20, "n1", "Running", scheduler="other"))
    before = dump(state)
    task = state.tasks[KEY]
    record = state.nodes.records["n1"]
    state.nodes.discard(task)
    task.status = SchedulingStatus.RELEASING
    state.nodes.add(task, record)
    state.pods.assume([KEY])
    assert state.pods.forget(KEY, "u1")
    assert dump(state) == before


def test_a_refusal_concerns_one_uid(state: ClusterState) -> None:
    state.set_pod(shown_pod(20, "n1", "Running"))
    evict(state)
    state.remove_pod("ns", "p")
    assert not state.pods.forget(KEY, "u1"), "the pod is gone; nothing of it comes back"
    assert dump(state)["on"] == {}
    state.set_pod(shown_pod(30, "n1", "Running", uid="u2"))
    evict(state)
    assert not state.pods.forget(KEY, "u1")
    assert standing(state) == (SchedulingStatus.RELEASING, "n1")


def test_a_later_pod_of_the_same_name_starts_without_assumptions(state: ClusterState) -> None:
    state.set_pod(shown_pod(20))
    bind(state)
    state.set_pod(shown_pod(10, uid="u2"))
    assert standing(state) == (SchedulingStatus.PENDING, "")


# -- PodGroups -------------------------------------------------------------------------------


def assume(state: ClusterState, phase: str) -> None:
    state.gangs.assume_status(state.jobs[GROUP], PodGroupStatus(phase=phase))


def phase(state: ClusterState) -> str:
    return state.jobs[GROUP].phase


def test_an_older_event_does_not_overwrite_an_assumed_status(state: ClusterState) -> None:
    assume(state, "Inqueue")
    state.set_pod_group(shown_group(10, minimum=2))
    assert phase(state) == "Inqueue"
    assert state.jobs[GROUP].min_member == 2
    state.set_pod_group(shown_group(9))
    assert phase(state) == "Inqueue"
    assert state.jobs[GROUP].min_member == 2


def test_a_gang_that_waits_no_more_by_its_assumed_status_is_not_parked(state: ClusterState) -> None:
    """A reason that is out of date would keep cycles from being left out until the gang changes."""
    state.parked.park(GROUP, Parked(int(Cause.NODES)))
    state.parked.happened(Cause.NODES)
    state.parked.begin(state.gangs.waiting, state.gangs.waiting_keys, ())
    assert [*state.parked.stale] == [GROUP]
    assume(state, "Inqueue")
    assert not state.parked.stale
    assert not state.parked.gangs


def test_a_later_event_ends_an_assumed_status(state: ClusterState) -> None:
    """The write carries version 10: it made version 11, or it is refused."""
    assume(state, "Running")
    state.set_pod_group(shown_group(11, "Pending"))
    assert phase(state) == "Pending"
    assert state.assumed.status_to_write(GROUP) is None


def test_a_status_counts_until_the_watch_shows_the_write(state: ClusterState) -> None:
    assume(state, "Inqueue")
    write = state.assumed.status_to_write(GROUP)
    assert write is not None
    assert (write.uid, write.version) == ("g1", "10")
    state.assumed.status_written(GROUP, write, "15")
    assert state.assumed.status_to_write(GROUP) is None
    state.set_pod_group(shown_group(12))
    assert phase(state) == "Inqueue", "an event from before the write"
    state.set_pod_group(shown_group(15, "Inqueue"))
    state.set_pod_group(shown_group(16, "Pending"))
    assert phase(state) == "Pending"


def test_a_status_on_top_of_a_write_carries_its_version(state: ClusterState) -> None:
    assume(state, "Inqueue")
    first = state.assumed.status_to_write(GROUP)
    assert first is not None
    assume(state, "Running")
    state.assumed.status_written(GROUP, first, "15")
    second = state.assumed.status_to_write(GROUP)
    assert second is not None
    assert (second.version, second.status.phase) == ("15", "Running")
    state.set_pod_group(shown_group(15, "Inqueue"))
    assert phase(state) == "Running"
    state.assumed.status_written(GROUP, second, "18")
    assume(state, "Completed")
    third = state.assumed.status_to_write(GROUP)
    assert third is not None
    assert third.version == "18"


def test_a_late_answer_leaves_a_later_status_alone(state: ClusterState) -> None:
    assume(state, "Inqueue")
    late = state.assumed.status_to_write(GROUP)
    assert late is not None
    state.set_pod_group(shown_group(12, "Pending"))
    assume(state, "Running")
    state.assumed.status_written(GROUP, late, "11")
    current = state.assumed.status_to_write(GROUP)
    assert current is not None
    assert current.version == "12"


def test_a_later_group_of_the_same_name_has_a_status_of_its_own(state: ClusterState) -> None:
    assume(state, "Running")
    state.set_pod_group(shown_group(10, uid="g2"))
    assert phase(state) == "Pending"
    assume(state, "Running")
    state.remove_pod_group("ns", "g")
    assert state.assumed.status_to_write(GROUP) is None
