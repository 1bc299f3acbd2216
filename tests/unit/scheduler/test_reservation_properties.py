"""With a reservation, every gang that the empty cluster could hold runs in the end, without its time ever being over.

Clusters are closed: gangs come, run for some cycles and go, and nothing else happens. Pods of some gangs are created some
cycles after the gang has entered its queue, as the controller does it; and the scheduler may be another process from some
cycle on, which knows only the objects.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.api.meta import format_time
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import NOW, Raw, Scenario, config_text, pod_group

CYCLES = 160
"""More than the gangs of a case take one after the other, with their nodes reserved one by one."""

CLASSES = {"low": 10, "high": 1000}


@dataclass
class Gang:
    """A gang of equal pods.

    Attributes:
        size: Pods, all of which it needs.
        cpu: What each asks for.
        queue: Its queue.
        prio: Its priority class, empty for none.
        comes: The cycle before which it is created.
        delay: Cycles after which its pods are created once it has entered; None if they are there before.
        counts: Whether `minResources` says what it needs.
        runs: Cycles for which it runs, once all its pods do.
        breaks: Whether its first pod is replaced in the cycle after it has started; it ends only as a whole.
    """

    size: int
    cpu: int
    queue: str
    prio: str
    comes: int
    delay: int | None
    counts: bool
    runs: int
    breaks: bool


@dataclass
class Case:
    """A closed cluster.

    Attributes:
        nodes: CPUs of each node.
        busy: For some nodes, CPUs that a pod takes there, the cycle in which it goes, and whether it is terminating.
        gangs: The gangs, each older than the next.
        capability: CPUs that queue `a` may have.
        is_fifo: Whether queue `a` takes gangs in order.
        config: The scheduler's configuration.
        shares: Its plugin of shares.
        restart: Before which cycle another scheduler takes over.
    """

    nodes: list[int]
    busy: dict[int, tuple[int, int, bool]]
    gangs: list[Gang]
    capability: int | None
    is_fifo: bool
    config: str
    shares: str
    restart: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = draw(st.lists(st.sampled_from([4, 8]), min_size=1, max_size=3))
    shares = draw(st.sampled_from(["", "capacity", "proportion"]))
    gangs = draw(
        st.lists(
            st.builds(
                Gang,
                size=st.integers(1, 4),
                cpu=st.sampled_from([1, 2, 3, 4, 8]),
                queue=st.sampled_from("ab"),
                prio=st.sampled_from(["", *CLASSES]),
                comes=st.integers(0, 6),
                delay=st.sampled_from([None, 0, 1, 2]),
                counts=st.booleans(),
                runs=st.integers(1, 4),
                breaks=st.booleans(),
            ),
            min_size=1,
            max_size=7,
        )
    )
    busy = {
        number: (draw(st.integers(1, cpu)), draw(st.integers(1, 5)), draw(st.booleans()))
        for number, cpu in enumerate(nodes)
        if draw(st.booleans())
    }
    first = draw(st.sampled_from([["gang", "reservation"], ["priority", "gang", "reservation"]]))
    overcommit = {
        "overcommit": None,
        "args": {"overcommit-factor": draw(st.sampled_from([1.0, 1.2]))},
    }
    actions = draw(
        st.sampled_from(
            [
                ["enqueue", "elect", "allocate", "backfill", "reserve"],
                ["elect", "enqueue", "allocate", "reserve"],
                ["enqueue", "allocate", "elect", "reserve"],
            ]
        )
    )
    second: list[Any] = [overcommit, "predicates", *([shares] if shares else [])]
    timeout = "configurations:\n- name: reserve\n  arguments: {timeoutSeconds: 1000000}\n"
    return Case(
        nodes,
        busy,
        gangs,
        draw(st.sampled_from([None, 4, 8])) if shares else None,
        draw(st.booleans()),
        config_text([first, second], actions) + timeout,
        shares,
        draw(st.integers(1, 20)),
    )


@dataclass
class Cluster:
    """A case as it goes on."""

    case: Case
    scenario: Scenario = field(init=False)
    groups: dict[str, Raw] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    entered: dict[str, int] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.scenario = Scenario(self._frame(), self.case.config)
        for number, (cpu, _, is_leaving) in self.case.busy.items():
            options = {"deleting": True} if is_leaving else {}
            self.scenario.add_pod(
                ["ns", f"busy-{number}", f"n{number}", "Running", cpu, 0, "", options]
            )

    def _frame(self) -> Raw:
        case = self.case
        queue: Raw = {"capability": {"cpu": str(case.capability)}} if case.capability else {}
        if case.is_fifo:
            queue["dequeueStrategy"] = "fifo"
        return {
            "nodes": [[f"n{number}", cpu, "64Gi"] for number, cpu in enumerate(case.nodes)],
            "queues": [["a", queue], ["b", {}]],
            "classes": CLASSES,
        }

    def take_over(self) -> None:
        """Go on with a scheduler that knows only the objects."""
        pods, statuses = self.scenario.pods, dict(self.scenario.state.gangs.statuses)
        groups = [
            (self.scenario.state.jobs[f"ns/{name}"].group, f"ns/{name}") for name in self.groups
        ]
        self.scenario = Scenario(self._frame(), self.case.config)
        for group, key in groups:
            assert group is not None
            told = replace(group, status=statuses.get(key, group.status))
            self.scenario.state.set_pod_group(told)
        for key, manifest in pods.items():
            self.scenario.pods[key] = manifest
            self.scenario.show(manifest)

    def step(self, moment: int) -> None:
        """One cycle, with what happens before it."""
        case, scenario = self.case, self.scenario
        for number, gang in enumerate(case.gangs):
            name = f"g{number}"
            if gang.comes == moment:
                created = format_time(NOW - 1000 + 10 * number)
                options: Raw = {"created": created, "prio": gang.prio}
                if gang.counts:
                    options["minRes"] = {"cpu": str(gang.size * gang.cpu)}
                self.groups[name] = options
                row = ["ns", name, gang.queue, gang.size, "Pending", options]
                scenario.state.set_pod_group(pod_group(row))
                if gang.delay is None:
                    self._create_pods(name, gang)
            entered = self.entered.get(name)
            if entered is not None and gang.delay is not None and entered + gang.delay == moment:
                self._create_pods(name, gang)
            started = self.started.get(name)
            if started is not None and gang.breaks and name not in self.broken:
                self.broken.add(name)
                del self.started[name]
                scenario.state.remove_pod("ns", f"{name}-0")
                self._create_pod(name, gang, 0)
            elif started is not None and started + gang.runs == moment:
                self._end(name, gang)
        for number, (_, ends, _) in case.busy.items():
            if ends == moment:
                scenario.state.remove_pod("ns", f"busy-{number}")
                del scenario.pods[f"ns/busy-{number}"]
        result = scenario.cycle(NOW + moment)
        for key, node in result.binds.items():
            scenario.pods[key]["spec"]["nodeName"] = node
            scenario.pods[key]["status"]["phase"] = "Running"
            scenario.show(scenario.pods[key])
        for name in self.groups:
            gang = case.gangs[int(name[1:])]
            pods = [scenario.pods.get(f"ns/{name}-{index}") for index in range(gang.size)]
            if all(pod and pod["spec"].get("nodeName") for pod in pods):
                self.started.setdefault(name, moment)
            if name not in self.entered and scenario.phase(f"ns/{name}") != "Pending":
                self.entered[name] = moment + 1

    def _create_pods(self, name: str, gang: Gang) -> None:
        for index in range(gang.size):
            self._create_pod(name, gang, index)

    def _create_pod(self, name: str, gang: Gang, index: int) -> None:
        self.scenario.add_pod(["ns", f"{name}-{index}", "", "Pending", gang.cpu, 0, name])

    def _end(self, name: str, gang: Gang) -> None:
        for index in range(gang.size):
            self.scenario.state.remove_pod("ns", f"{name}-{index}")
            del self.scenario.pods[f"ns/{name}-{index}"]
        self.scenario.state.remove_pod_group("ns", name)
        del self.groups[name]
        self.done.add(name)

    def owed(self) -> set[str]:
        """Gangs that the empty cluster could hold, and that no gang of a fifo queue holds back for ever."""
        case = self.case
        fitting, stuck = set(), set()
        total = sum(case.nodes)
        if case.shares == "proportion" and len({gang.queue for gang in case.gangs}) > 1:
            total //= 2  # what a queue deserves while the other one asks for as much
        for number, gang in enumerate(case.gangs):
            places = sum(cpu // gang.cpu for cpu in case.nodes)
            limit = min(total, (gang.queue == "a" and case.capability) or total)
            if places >= gang.size and gang.size * gang.cpu <= limit:
                fitting.add(f"g{number}")
            else:
                stuck.add(gang.queue)
        if case.shares == "proportion" and stuck:
            return (
                set()
            )  # what waits for ever counts as demand of its queue, of which others get less
        return {
            name
            for name in fitting
            if not (case.is_fifo and case.gangs[int(name[1:])].queue == "a" and "a" in stuck)
        }


@given(cases())
@examples(150)
def test_every_gang_that_fits_runs(case: Case) -> None:
    cluster = Cluster(case)
    owed = cluster.owed()
    for moment in range(CYCLES):
        if moment == case.restart:
            cluster.take_over()
        cluster.step(moment)
        if owed <= cluster.done:
            return
    state = cluster.scenario.state
    waiting = {key: reason.message for key, reason in state.gangs.pending.items()}
    raise AssertionError(f"{owed - cluster.done} never ran: {state.reservation}, {waiting}")
