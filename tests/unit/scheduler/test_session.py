"""How the answers of several plugins are combined."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
import pytest

from pumice.scheduler import SchedulerRegistry, builtin_registry, load_config, options
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.options import Step
from pumice.scheduler.points import Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import Scenario, config_text

GANG = {"podgroups": [["ns", "g", "default", 1, "Pending", {"minRes": {"cpu": 1}}]]}


def _plugin(name: str, register: Callable[[Registrar], None]) -> PluginSpec:
    """A plugin that registers something."""

    class Test:
        def __init__(self, _arguments: Arguments) -> None:
            pass

        def open(self, _session: SessionView, registrar: Registrar) -> None:
            register(registrar)

    return PluginSpec(name, "A test's plugin.", Test)


def _registry(*plugins: PluginSpec) -> SchedulerRegistry:
    return builtin_registry().extended(plugins=plugins)


def _session(tiers: list[list[str]], *plugins: PluginSpec) -> Session:
    return open_session(Scenario(GANG, load_config(config_text(tiers), _registry(*plugins))))


def _enqueueable(**votes: Vote | Reason) -> list[PluginSpec]:
    return [
        _plugin(name, lambda register, vote=vote: register.job_enqueueable(lambda _job: vote))  # type: ignore[misc]
        for name, vote in votes.items()
    ]


NO = Reason("No", "no")


@pytest.mark.parametrize(
    ("tiers", "votes", "reason"),
    [
        ([["a"]], {"a": Vote.PERMIT}, None),
        ([["a"]], {"a": Vote.ABSTAIN}, None),
        ([["a", "b"]], {"a": Vote.PERMIT, "b": NO}, "No"),
        ([["a", "b"]], {"a": Vote.PERMIT, "b": Vote.REJECT}, "Rejected"),
        ([["a"], ["b"]], {"a": Vote.PERMIT, "b": NO}, None),
        ([["a"], ["b"]], {"a": Vote.ABSTAIN, "b": NO}, "No"),
        ([["gang"]], {}, None),
    ],
)
def test_votes_count_tier_by_tier(
    tiers: list[list[str]], votes: dict[str, Vote | Reason], reason: str | None
) -> None:
    session = _session(tiers, *_enqueueable(**votes))
    found = session.answers.why_not_enqueueable(session.state.jobs["ns/g"], "")
    assert (found.reason if found else None) == reason


def test_a_rejected_gang_stays_pending_and_says_why() -> None:
    (spec,) = _enqueueable(quota=Reason("QuotaExceeded", "queue default is full", {"cpu": 1}))
    config = load_config(config_text([["gang", "quota"]]), _registry(spec))
    scenario = Scenario(GANG, config)
    result = scenario.cycle()
    assert scenario.phase("ns/g") == "Pending"
    assert scenario.conditions("ns/g") == {"Unschedulable": "True"}
    assert result.pending["ns/g"] == Reason("QuotaExceeded", "queue default is full", {"cpu": 1})
    assert [event.message for event in result.events] == ["queue default is full"]


def test_gangs_without_minimum_resources_enter_without_a_vote() -> None:
    (spec,) = _enqueueable(quota=NO)
    config = load_config(config_text([["gang", "quota"]]), _registry(spec))
    scenario = Scenario({"podgroups": [["ns", "g", "default", 1, "Pending"]]}, config)
    scenario.cycle()
    assert scenario.phase("ns/g") == "Inqueue"


def test_who_entered_is_reported_to_all() -> None:
    told: list[str] = []
    spec = _plugin("t", lambda register: register.job_enqueued(lambda job: told.append(job.key)))
    scenario = Scenario(GANG, load_config(config_text([["t"]]), _registry(spec)))
    scenario.cycle()
    assert told == ["ns/g"]


@pytest.mark.parametrize(
    ("tiers", "votes", "kept"),
    [
        ([["a"]], {"a": Vote.PERMIT}, True),
        ([["a", "b"]], {"a": Vote.PERMIT, "b": Vote.REJECT}, False),
        ([["a"], ["b"]], {"a": Vote.PERMIT, "b": Vote.REJECT}, True),
        ([["a"], ["b"]], {"a": Vote.ABSTAIN, "b": Vote.REJECT}, False),
        ([["binpack"]], {}, True),
    ],
)
def test_promises_are_kept_by_votes(
    tiers: list[list[str]], votes: dict[str, Vote], kept: bool
) -> None:
    plugins = [
        _plugin(name, lambda register, vote=vote: register.job_pipelined(lambda _job: vote))  # type: ignore[misc]
        for name, vote in votes.items()
    ]
    session = _session(tiers, *plugins)
    assert session.answers.is_pipelined(session.state.jobs["ns/g"]) is kept


@pytest.mark.parametrize(
    ("tiers", "starving"),
    [([["yes", "no"]], False), ([["yes"], ["no"]], True), ([["no"], ["yes"]], False), ([], False)],
)
def test_the_first_tier_with_an_opinion_says_who_starves(
    tiers: list[list[str]], starving: bool
) -> None:
    session = _session(
        tiers,
        _plugin("yes", lambda register: register.job_starving(lambda _job: True)),
        _plugin("no", lambda register: register.job_starving(lambda _job: False)),
    )
    assert session.answers.is_starving(session.state.jobs["ns/g"]) is starving


def test_the_first_plugin_that_sees_a_difference_orders() -> None:
    by_name = _plugin("by-name", lambda register: register.job_order(lambda job: job.name))
    scenario = Scenario(
        {"podgroups": [["ns", "z", "default", 1, "Pending"], ["ns", "a", "default", 1, "Pending"]]},
        load_config(config_text([["gang"], ["by-name"]]), _registry(by_name)),
    )
    session = open_session(scenario)
    assert sorted(session.view.waiting, key=session.answers.job_key)[0].name == "a"
    scenario.add_pod(["ns", "z-0", "n", "Running", 1, "1Gi", "z"])
    scenario.add_pod(["ns", "z-1", "", "Pending", 1, "1Gi", "z"])
    assert session.answers.job_key(scenario.state.jobs["ns/a"]) < session.answers.job_key(
        scenario.state.jobs["ns/z"]
    )


def test_an_overused_queue_gets_no_turn() -> None:
    spec = _plugin("greedy", lambda register: register.overused(lambda _queue: True))
    scenario = Scenario(
        {
            "nodes": [["n", 4, "8Gi"]],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [["ns", "p", "", "Pending", 1, "1Gi", "g"]],
        },
        load_config(config_text([["gang", "greedy"]]), _registry(spec)),
    )
    result = scenario.cycle()
    assert result.binds == {}
    assert result.pending["ns/g"].reason == "QueueOverused"


def test_a_queue_may_refuse_single_pods() -> None:
    """A limit of the queue is a reason of the whole gang, not of a node."""
    refusal = Reason("QueueLimit", "queue default may use 1 cpu", {"limit": "1"})
    spec = _plugin(
        "limit",
        lambda register: register.allocatable(
            lambda _queue, task: refusal if task.name == "p-1" else None
        ),
    )
    case = {
        "nodes": [["n", 4, "8Gi"]],
        "podgroups": [["ns", "p", "default", 2, "Inqueue"]],
        "pod_sets": [{"pg": "p", "count": 2}],
    }
    config = load_config(config_text([["gang", "limit"]]), _registry(spec))
    result = Scenario(case, config).cycle()
    assert result.binds == {}
    assert result.pending["ns/p"].reason == "QueueLimit"
    assert result.pending["ns/p"].message.endswith("Origin reason is: queue default may use 1 cpu")
    assert result.pending["ns/p"].details["limit"] == "1"
    case["podgroups"] = [["ns", "p", "default", 1, "Inqueue"]]
    result = Scenario(case, config).cycle()
    assert result.binds == {"ns/p-0": "n"}
    assert result.pending["ns/p"].reason == "QueueLimit"


def test_switches_keep_plugins_out() -> None:
    """With every switch off, gang registers only what has no switch: whether a job is valid."""
    config = load_config(config_text([[{"gang": []}]]))
    extensions = open_session(Scenario(GANG, config)).extensions
    assert [each.plugin for each in extensions.job_valid] == ["gang"]
    assert (extensions.job_order, extensions.job_ready, extensions.job_pipelined) == ([], [], [])


def test_a_plugin_registers_in_every_session() -> None:
    scenario = Scenario(GANG, load_config(config_text([["gang"]])))
    assert len(open_session(scenario).extensions.job_ready) == 1
    assert len(open_session(scenario).extensions.job_ready) == 1


@pytest.mark.parametrize(("beside", "built"), [([], 1), (["theirs"], 3)])
def test_plugins_that_last_are_built_once_if_all_others_last(beside: list[str], built: int) -> None:
    calls: list[str] = []

    class Lasting(LastingPlugin):
        def __init__(self, _arguments: Arguments) -> None:
            calls.append("built")

        def open(self, _session: SessionView, register: Registrar) -> None:
            register.job_ready(lambda _: True)

    lasting = PluginSpec("lasting", "A test's plugin.", Lasting)
    theirs = _plugin("theirs", lambda register: register.job_valid(lambda _: None))
    registry = _registry(lasting, theirs)
    scenario = Scenario(GANG, load_config(config_text([["gang", "lasting", *beside]]), registry))
    for _ in range(3):
        extensions = open_session(scenario).extensions
        assert [each.plugin for each in extensions.job_ready] == ["gang", "lasting"]
        assert [each.plugin for each in extensions.job_valid] == ["gang", *beside]
    assert len(calls) == built


def test_another_configuration_has_plugins_of_its_own() -> None:
    scenario = Scenario(GANG, config_text([["gang"], ["priority"]]))
    assert len(open_session(scenario).extensions.job_order) == 2
    scenario.config = load_config(config_text([["priority"]]))
    assert [each.plugin for each in open_session(scenario).extensions.job_order] == ["priority"]


BY_CHECK = ("spares_gangs", "most_taken")
LASTING = [option.spec.name for option in load_config().plugins] + ["capacity"]
BUCKETS = {"annotations": {"volcano.sh/task-topology-anti-affinity": "a"}}
LIMITS = {"annotations": {"volcano.sh/nodegroup-resource-limits": "{}"}}
CLAIM = {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}}
APART = [{"labelSelector": {}, "topologyKey": "zone"}]
ALONE = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": APART}}}


def _with_pod(name: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"pods": [["ns", name, "", "Pending", 1, "1Gi", "g", options]]}


@pytest.mark.parametrize(
    "cluster",
    [
        {"queues": [["other"]]},
        {"queues": [["other", LIMITS]]},
        _with_pod("g-a-0", {"role": "a"})
        | {"podgroups": [["ns", "g", "default", 1, "Inqueue", BUCKETS]]},
        _with_pod("p-0", CLAIM),
        _with_pod("p-0", ALONE),
        {"nodes": [["n1", 8, "8Gi"]], "hyper_nodes": {"rack": {"nodes": ["n1"]}}},
    ],
    ids=["queue", "limits", "buckets", "claim", "anti-affinity", "HyperNode"],
)
@pytest.mark.parametrize("plugin", LASTING)
def test_a_plugin_that_lasts_registers_what_a_new_one_would(
    plugin: str, cluster: dict[str, Any]
) -> None:
    """When something has come, as long as it is there, and when it is gone."""
    config = load_config(config_text([[plugin]]))
    lasting: object = None
    for here in (GANG, cluster, cluster, GANG):
        scenario = Scenario(here, config)
        expected = _registered(open_session(scenario))
        assert here is not GANG or scenario.state.lasting is not None
        scenario.state.lasting = lasting
        assert _registered(open_session(scenario)) == expected
        lasting = scenario.state.lasting


@pytest.mark.parametrize(
    "cluster",
    [
        {"queues": [["other", LIMITS]]},
        _with_pod("g-a-0", {"role": "a"})
        | {"podgroups": [["ns", "g", "default", 1, "Inqueue", BUCKETS]]},
        _with_pod("p-0", CLAIM),
    ],
    ids=["limits", "buckets", "claim"],
)
def test_each_plugin_begins_a_session_once_where_one_cannot_last(cluster: dict[str, Any]) -> None:
    begun: list[str] = []

    def measure(step: Step, name: str) -> AbstractContextManager[None]:
        begun.extend([name] if step == "plugin" else [])
        return nullcontext()

    scenario = Scenario(
        cluster, config_text([["drf", "overcommit", "task-topology"], ["predicates", "nodegroup"]])
    )
    for _ in range(2):
        begun.clear()
        options.open_session(scenario.state, scenario.config, 0.0, measure).close()
        assert begun == ["drf", "overcommit", "task-topology", "predicates", "nodegroup"]


def _registered(session: Session) -> dict[str, Any]:
    """What plugins have registered, functions by their names; promises are kept by the identity of the check."""
    found = vars(session.extensions)
    by_check = {name: sorted(map(_named, found[name].values())) for name in BY_CHECK}
    return {name: _named(each) for name, each in found.items()} | by_check


def _named(found: Any) -> Any:
    if isinstance(found, msgspec.Struct):
        found = msgspec.structs.asdict(found)
    if isinstance(found, dict):
        return {_named(key): _named(each) for key, each in found.items()}
    if isinstance(found, list | tuple):
        return [_named(each) for each in found]
    if isinstance(found, set):
        return sorted(map(str, map(_named, found)))
    return getattr(found, "__qualname__", type(found).__name__) if callable(found) else found


def test_a_shape_that_found_no_node_is_not_tried_again_pod_by_pod() -> None:
    """Nine equal workers find no node; two of the ps' role do, so the gang goes on, and asks about a worker once."""
    asked: list[str] = []

    class Counting:
        def __init__(self, _arguments: Arguments) -> None:
            pass

        def open(self, session: SessionView, register: Registrar) -> None:
            def judge(task: TaskInfo, _rows: Rows) -> None:
                asked.append(task.role)

            register.task_score(judge)

    case = {
        "nodes": [["n1", 4, "8Gi"]],
        "podgroups": [
            ["ns", "pg", "default", 2, "Inqueue", {"minTask": {"ps": 2, "worker": 1}}],
        ],
        "pod_sets": [
            {"pg": "pg", "role": "worker", "count": 9, "cpu": 9},
            {"pg": "pg", "role": "ps", "count": 2},
        ],
    }
    config = load_config(
        config_text([["gang", "counting"]]),
        _registry(PluginSpec("counting", "A test's plugin.", Counting)),
    )
    scenario = Scenario(case, config)
    assert sorted(scenario.cycle().binds) == ["ns/pg-ps-0", "ns/pg-ps-1"]
    assert asked.count("worker") <= 2
