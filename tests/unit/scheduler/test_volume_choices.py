"""What claims are to be bound to: kept while it is decided, given back exactly, and equal to a recount."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.api.meta import ObjectMeta
from pumice.api.nodes import PriorityClass
from pumice.api.pods import Pod
from pumice.api.volumes import PersistentVolumeClaim, VolumeClaimReference
from pumice.scheduler.model.tasks import NEEDS_ROOM, SchedulingStatus
from pumice.scheduler.options import open_session
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import Scenario, config_text, pod_group
from tests.unit.scheduler.volume_scenarios import add_pod, bind_claims, choices, claim, scenario_of


def _recount(scenario: Scenario) -> tuple[dict[str, Any], dict[str, str]]:
    """Pods that use each claim, and the volumes that are taken, from the pods alone."""
    users: dict[str, dict[str, bool]] = {}
    for task in scenario.state.tasks.values():
        if task.node and (task.status in NEEDS_ROOM or task.status is SchedulingStatus.PIPELINED):
            for key in task.shape.claims:
                users.setdefault(key, {})[task.key] = task.status is SchedulingStatus.RELEASING
    taken = {
        choice.volume: key
        for task in scenario.state.tasks.values()
        for key, choice in scenario.state.claims.choices.of(task.shape.claims).items()
        if choice.volume
    }
    return users, taken


def _counts(scenario: Scenario) -> tuple[Any, ...]:
    """Everything that follows from which pods are where: choices, taken volumes, users of claims, attached volumes."""
    claims = scenario.state.claims
    choices = {
        key: (choice.volume, choice.node, frozenset(choice.holders))
        for key, choice in claims.choices.by_claim.items()
    }
    users = {key: dict(pods) for key, pods in claims._users.items()}
    attached = {key: tuple(counts) for key, counts in claims.attachments._users.items()}
    return choices, dict(claims.choices._taken), users, attached


def assert_counts_are_right(scenario: Scenario) -> None:
    claims = scenario.state.claims
    users, taken = _recount(scenario)
    _, was_taken, was_used, attached = _counts(scenario)
    assert (was_used, was_taken) == (users, taken)
    found: dict[Any, list[int]] = {}
    for task in scenario.state.tasks.values():
        if task.key not in claims._uses:
            continue
        volumes = {claims.objects.attached(key) for key in task.shape.claims} - {None}
        for volume in volumes:
            counts = found.setdefault((task.node, volume), [0, 0])
            counts[0] += 1
            counts[1] += int(task.status is SchedulingStatus.RELEASING)
    assert attached == {key: tuple(counts) for key, counts in found.items()}
    for pool in claims.choices._pools.values() if claims.choices._are_pools_current() else ():
        free = [
            name
            for name in pool
            if name not in claims.choices._taken and name not in claims.objects.owners
        ]
        whole = sum(1 for name in free if claims.objects.volumes[name].affinity is None)
        assert pool.everywhere == whole
        near = [
            each for name in free if (each := claims.objects.volumes[name]).affinity is not None
        ]
        rows = [claims._reach.rows(each.key, each.affinity) for each in near]
        assert pool.counts.sum() == sum(len(each) for each in rows if each is not None)
        records = [claims.objects.volumes[name] for name in free]
        reach = {each.name: claims._reach.rows(each.key, each.affinity) for each in records}
        for row in range(claims._reach.count):
            reached = [
                (each.size, each.name)
                for each in records
                if (at := reach[each.name]) is None or row in at
            ]
            assert pool.smallest(row) == min(reached, default=(0, ""))[1]
            rest = sorted(reached)[1:]
            assert pool.smallest(row, {pool.smallest(row)}) == (rest[0][1] if rest else "")


ROWS = {
    "volumes": {"s1": ["share", 20], "s2": ["share", 30], "wide": ["local", 20]},
    "claims": {
        **{f"l{number}": {"class": "local"} for number in range(4)},
        **{f"s{number}": {"class": "share"} for number in range(2)},
        "a0": {"class": "any"},
        "z0": {"class": "zonal"},
    },
    "csi_nodes": {"n1": {"disk.example.com": 1}},
    "pods": {},
    "min": 1,
}
CLAIM = st.sampled_from(["l0", "l1", "l2", "l3", "s0", "s1", "a0", "z0"])
PODS = st.lists(st.lists(CLAIM, max_size=3, unique=True), min_size=1, max_size=5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.integers(0, 4), st.sampled_from(["n1", "n2", "n3"])),
        st.tuples(st.just("promise"), st.integers(0, 4), st.sampled_from(["n1", "n2", "n3"])),
        st.tuples(st.just("back"), st.integers(0, 8), st.just("")),
    ),
    max_size=12,
)


@examples(60, always_the_same=False)
@given(pods=PODS, steps=STEPS)
def test_a_statement_that_is_undone_gives_back_exactly(
    pods: list[list[str]], steps: list[tuple[str, int, str]]
) -> None:
    scenario = scenario_of(ROWS)
    for number, mounted in enumerate(pods):
        add_pod(scenario, f"p-{number}", mounted)
    scenario.state.settle()
    session = open_session(scenario.state, scenario.config, 0.0)
    before = _counts(scenario)
    statement = session.statement()
    history: list[tuple[object, ...]] = []
    for what, number, node in steps:
        task = scenario.state.tasks.get(f"ns/p-{number}")
        if what == "back":
            if number < len(history):
                statement.roll_back(number)
                assert _counts(scenario) == history[number]
                del history[number:]
        elif task is not None and task.status is SchedulingStatus.PENDING:
            history.append(_counts(scenario))
            act = statement.allocate if what == "place" else statement.pipeline
            act(task, scenario.state.nodes.records[node])
        assert_counts_are_right(scenario)
    statement.discard()
    assert _counts(scenario) == before
    session.close()


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("cycle"), st.integers(0, 0)),
        st.tuples(st.just("pod"), st.integers(0, 4)),
        st.tuples(st.just("gone"), st.integers(0, 4)),
        st.tuples(st.just("refused"), st.integers(0, 4)),
        st.tuples(st.just("started"), st.integers(0, 0)),
        st.tuples(st.just("bound"), st.integers(0, 0)),
        st.tuples(st.just("claim gone"), st.integers(0, 3)),
        st.tuples(st.just("claim"), st.integers(0, 3)),
        st.tuples(st.just("volume gone"), st.integers(1, 3)),
    ),
    max_size=16,
)


@examples(60, always_the_same=False)
@given(pods=PODS, events=EVENTS)
def test_after_any_events_what_is_in_use_and_taken_equals_a_recount(
    pods: list[list[str]], events: list[tuple[str, int]]
) -> None:
    scenario = scenario_of(ROWS)
    for number, mounted in enumerate(pods):
        add_pod(scenario, f"p-{number}", mounted)
    result = scenario.cycle()
    for what, number in events:
        state = scenario.state
        match what:
            case "cycle":
                result = scenario.cycle()
            case "pod" if number < len(pods):
                add_pod(scenario, f"p-{number}", pods[number])
            case "gone":
                state.remove_pod("ns", f"p-{number}")
                scenario.pods.pop(f"ns/p-{number}", None)
            case "refused" if f"ns/p-{number}" in state.tasks:
                state.pods.forget(f"ns/p-{number}", f"uid-p-{number}")
            case "started":
                still = {key: node for key, node in result.binds.items() if key in scenario.pods}
                for key, node in still.items():
                    manifest = scenario.pods[key]
                    manifest["spec"]["nodeName"], manifest["status"]["phase"] = node, "Running"
                    state.set_pod(msgspec.convert(manifest, Pod))
            case "bound":
                bind_claims(scenario)
            case "claim gone":
                state.remove_claim("ns", f"l{number}")
            case "claim":
                raw = claim(f"l{number}", {"class": "local"})
                state.set_claim(msgspec.convert(raw, PersistentVolumeClaim))
            case "volume gone":
                state.remove_volume(f"local-n{number}")
        assert_counts_are_right(scenario)


def _gang(count: int) -> dict[str, Any]:
    return {
        "claims": {f"d{number}": {"class": "any"} for number in range(count)},
        "pods": {f"p-{number}": [f"d{number}"] for number in range(count)},
    }


def test_five_more_rounds_change_nothing_while_claims_are_being_bound_and_after() -> None:
    scenario = scenario_of(_gang(3))
    result = scenario.cycle()
    assert len(result.binds) == 3
    chosen = choices(scenario)
    for _ in range(5):
        assert scenario.cycle().binds == {}
        assert choices(scenario) == chosen
    bind_claims(scenario)
    scenario.start(result)
    assert choices(scenario) == {}
    for _ in range(5):
        again = scenario.cycle()
        assert (again.binds, again.evicted, again.pipelined) == ({}, [], {})
    assert {task.status for task in scenario.state.tasks.values()} == {SchedulingStatus.RUNNING}


def test_a_pod_that_is_forgotten_gives_its_volume_back() -> None:
    scenario = scenario_of({"claims": {"d0": {"class": "local"}}, "pods": {"p": ["d0"]}})
    scenario.cycle()
    assert choices(scenario) == {"d0": "local-n1"}
    scenario.state.pods.forget("ns/p", "uid-p")
    assert choices(scenario) == {}
    assert scenario.cycle().binds == {"ns/p": "n1"}


def test_a_volume_that_two_claims_name_is_for_none_else_while_one_of_them_does() -> None:
    case = {
        "volumes": {"a": ["share", 20]},
        "claims": {
            "data": {"class": "share"},
            **{name: {"class": "share", "volumeName": "a"} for name in ("first", "second")},
        },
        "pods": {"p": ["data"]},
    }
    scenario = scenario_of(case)
    scenario.state.remove_claim("ns", "second")
    assert scenario.cycle().binds == {}
    scenario.state.remove_claim("ns", "first")
    assert scenario.cycle().binds == {"ns/p": "n1"}


def test_the_reason_follows_a_volume_that_another_claim_gets() -> None:
    named = {name: {"class": "share", "volumeName": "a"} for name in ("first", "second")}
    scenario = scenario_of(
        {"volumes": {"a": ["share", 20]}, "claims": named, "pods": {"p": ["second"]}}
    )
    assert 'waits for persistentvolume "a"' in scenario.cycle().pending["ns/pg"].message
    old = scenario.state.claims.objects.volumes["a"].volume
    owner = VolumeClaimReference("ns", "first", "uid-first")
    scenario.state.set_volume(replace(old, spec=replace(old.spec, claim_ref=owner)))
    message = scenario.cycle().pending["ns/pg"].message
    assert 'which is for persistentvolumeclaim "ns/first"' in message


def test_a_volume_that_changes_its_class_by_the_old_annotation_is_found() -> None:
    case = {"volumes": {"a": ["other", 20]}, "claims": {"data": {"class": "share"}}}
    scenario = scenario_of(case | {"pods": {"p": ["data"]}})
    assert scenario.cycle().binds == {}
    old = scenario.state.claims.objects.volumes["a"].volume
    noted = {"volume.beta.kubernetes.io/storage-class": "share"}
    changed = replace(old, metadata=replace(old.metadata, annotations=noted))
    assert scenario.state.set_volume(changed)
    assert scenario.cycle().binds == {"ns/p": "n1"}
    assert not scenario.state.set_volume(changed)


def test_a_claim_that_changes_its_class_by_the_old_annotation_is_found() -> None:
    case = {"volumes": {"a": ["share", 20]}, "claims": {"data": {"class": "other"}}}
    scenario = scenario_of(case | {"pods": {"p": ["data"]}})
    assert scenario.cycle().binds == {}
    raw = {"metadata": {"name": "data"}} | claim("data", {"class": "other", "annotation": "share"})
    assert scenario.state.set_claim(msgspec.convert(raw, PersistentVolumeClaim))
    assert scenario.cycle().binds == {"ns/p": "n1"}


def test_what_was_decided_outlives_a_change_of_the_pod() -> None:
    scenario = scenario_of({"claims": {"d0": {"class": "local"}}, "pods": {"p": ["d0"]}})
    scenario.cycle()
    spec = {"volumes": [{"name": "v0", "persistentVolumeClaim": {"claimName": "d0"}}]}
    options = {"spec": spec, "uid": "uid-p", "prio": 7}
    scenario.add_pod(["ns", "p", "", "Pending", 1, "1Gi", "pg", options])
    assert choices(scenario) == {"d0": "local-n1"}
    assert scenario.state.tasks["ns/p"].status is SchedulingStatus.BINDING


def test_a_waiting_gang_is_tried_again_when_a_volume_is_created() -> None:
    scenario = scenario_of({"claims": {"d0": {"class": "share"}}, "pods": {"p": ["d0"]}})
    assert scenario.cycle().binds == {}
    other = scenario_of({"volumes": {"late": ["share", 10]}, "pods": {}, "min": 1})
    scenario.state.set_volume(other.state.claims.objects.volumes["late"].volume)
    assert scenario.cycle().binds == {"ns/p": "n1"}


def test_a_claim_that_cannot_be_bound_takes_nothing_of_its_queue() -> None:
    scenario = scenario_of({"claims": {"d0": {"class": "typo"}}, "pods": {"p": ["d0"]}})
    scenario.config = scenario_of({}, [["gang", "predicates", "proportion"]]).config
    scenario.cycle()
    scenario.state.set_pod_group(pod_group(["ns", "next", "default", 1, "Inqueue"]))
    scenario.add_pod(["ns", "next-0", "", "Pending", 4, "1Gi", "next"])
    scenario.add_pod(["ns", "next-1", "", "Pending", 4, "1Gi", "next"])
    scenario.add_pod(["ns", "next-2", "", "Pending", 4, "1Gi", "next"])
    assert len(scenario.cycle().binds) == 3


def test_pods_with_claims_of_their_own_share_what_is_found_out_about_nodes() -> None:
    scenario = scenario_of(_gang(12))
    scenario.state.settle()
    session = open_session(scenario.state, scenario.config, 0.0)
    tasks = list(scenario.state.tasks.values())
    assert len({id(session.ranking(task, "default")) for task in tasks}) == 1
    session.close()


def test_a_victim_frees_the_claim_that_one_pod_at_a_time_may_use() -> None:
    case: dict[str, Any] = {
        "volumes": {"pv-x": ["any", 10]},
        "claims": {"x": {"class": "any", "bound": "pv-x", "accessModes": ["ReadWriteOncePod"]}},
        "running": {"old": ["n2", 1, "x"]},
        "pods": {"p": ["x"]},
        "actions": ["enqueue", "allocate", "preempt"],
    }
    scenario = scenario_of(case, [["priority", "gang", "predicates"]])
    spec = {"volumes": [{"name": "v0", "persistentVolumeClaim": {"claimName": "x"}}]}
    options = {"spec": spec, "uid": "uid-p", "deleting": False}
    scenario.add_pod(["ns", "p", "", "Pending", 1, "1Gi", "pg", options])
    leaving = {"spec": spec, "deleting": True}
    scenario.add_pod(["ns", "old", "n2", "Running", 1, "1Gi", "running", leaving])
    result = scenario.cycle()
    assert result.pipelined == {"ns/p": "n1"}
    scenario.state.remove_pod("ns", "old")
    assert scenario.cycle().binds == {"ns/p": "n1"}


@pytest.mark.parametrize(
    ("claims", "limits"),
    [
        ({"x": {"class": "any", "bound": "pv-x"}, "d0": {"class": "any"}}, 1),
        ({"x": {"class": "any", "bound": "pv-x"}, "d0": {"class": "any"}}, 2),
        ({"x": {"class": "any", "bound": "pv-x", "accessModes": ["ReadWriteOncePod"]}}, 1),
    ],
    ids=["attach limit", "attach limit with room", "claim for one pod at a time"],
)
def test_a_pod_is_evicted_for_what_it_uses(claims: dict[str, Any], limits: int) -> None:
    driver = {"driver": "disk.example.com", "volumeHandle": "h"}
    case: dict[str, Any] = {
        "csi_nodes": {"n1": {"disk.example.com": limits}, **{n: {"disk.example.com": 0} for n in ("n2", "n3")}},
        "volumes": {"pv-x": ["any", 10, "", {"csi": driver}]},
        "claims": claims,
        "running": {"old": ["n1", 1, "x"]},
        "actions": ["enqueue", "allocate", "preempt"],
    }  # fmt: skip
    scenario = scenario_of(case, [["priority", "gang", "predicates"]])
    scenario.state.set_priority_class(PriorityClass(metadata=ObjectMeta(name="high"), value=100))
    scenario.state.set_pod_group(pod_group(["ns", "running", "default", 0, "Running"]))
    scenario.state.set_pod_group(pod_group(["ns", "pg", "default", 1, "Inqueue", {"prio": "high"}]))
    add_pod(scenario, "p", ["d0" if "d0" in claims else "x"])
    result = scenario.cycle()
    if limits == 2:
        assert (result.evicted, result.binds) == ([], {"ns/p": "n1"})
        return
    assert (result.evicted, result.pipelined) == (["ns/old"], {"ns/p": "n1"})
    scenario.start(result)
    assert scenario.cycle().binds == {"ns/p": "n1"}
    for _ in range(5):
        assert (again := scenario.cycle()).binds == {}
        assert again.evicted == []


def test_the_configuration_says_how_long_binding_claims_may_take() -> None:
    assert scenario_of({}).config.bind_timeout == 600.0
    assert scenario_of({"disabled": ["predicate.VolumeBindingEnable"]}).config.bind_timeout is None
    assert Scenario({}, config_text([["gang"]])).config.bind_timeout is None
