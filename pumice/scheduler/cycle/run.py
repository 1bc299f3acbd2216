"""One scheduling cycle: a function of state, configuration and time.

Equal state and configuration give equal results. Ties are broken by name for nodes, by age and name for gangs, and by
index, age and name for pods.

An unexpected exception is caught, and tentative changes are undone. If it concerns one gang, that gang is put into
quarantine, and the cycle continues with the others; otherwise the cycle ends.

With a budget, a cycle ends between two gangs once its time is over (`budget`), and the next one continues.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pumice.scheduler.budget import Budget
from pumice.scheduler.cycle.closing import Closing, broken_topology
from pumice.scheduler.cycle.queue_events import unenforced
from pumice.scheduler.options import Config, Measure, open_session, unmeasured
from pumice.scheduler.results import CycleResult
from pumice.scheduler.session.outcomes import JobError
from pumice.scheduler.session.session import Session
from pumice.scheduler.state.watched_cluster import ClusterState
from pumice.scheduler.waiting.parked import Cause


def run_cycle(
    state: ClusterState,
    config: Config,
    now: float,
    measure: Measure = unmeasured,
    budget: Budget | None = None,
) -> CycleResult:
    """Decide about all waiting pods and gangs.

    Decisions are assumed in the state (see `ClusterState`). A cycle after which nothing has changed, with the same
    configuration, is not run again before something is due to be written.

    Args:
        state: The cluster; between cycles nothing tentative is left in it.
        config: The configuration.
        now: The moment, UNIX seconds; it stamps conditions and says which of them are due.
        measure: Measures how long the steps of a cycle take; nothing by default.
        budget: How long the cycle may take; no limit by default.
    """
    state.usage.moment = now
    if state.is_settled(config, now):
        return _nothing_decided(state)
    with measure("cycle", ""):
        return _run(state, config, now, measure, budget)


def _run(
    state: ClusterState, config: Config, now: float, measure: Measure, budget: Budget | None
) -> CycleResult:
    state.settle(now)
    state.cycles += 1
    if state.config is not config:
        state.config = config
        # Another configuration may enforce less of what queues say.
        state.gangs.changed_queues |= dict.fromkeys(state.queues)
        if all(spec.name != "reserve" for spec, _ in config.actions):
            state.set_reservation(None)  # nothing would end it
        state.parked.happened(Cause.ANY)
        state.parked.wake_all()
        state.claims.is_binding = config.bind_timeout is not None
    try:
        with measure("opening", ""):
            session = open_session(state, config, now, measure, budget)
    except Exception as failure:
        state.parked.happened(Cause.ANY)
        return _nothing_decided(state, failure)
    try:
        return _decide(session, config, measure)
    finally:
        session.end()


def _decide(session: Session, config: Config, measure: Measure) -> CycleResult:
    """Run the actions, and record what became of each gang."""
    state = session.state
    error = _act(session, config, measure)
    nominations = session.close()
    committed = session.committed
    if committed.binds or committed.evicted:
        state.pods.assume([*committed.binds, *committed.evicted])
    if nominations:
        state.pods.nominate(nominations)
    closing = Closing(session)
    try:
        if error is None:
            closing.run()
    except Exception as failure:
        error = failure
    if error is not None:
        state.parked.happened(Cause.ANY)
        return _result(closing, nominations, error)
    state.rounds.end_cycle(session.unreached, session.left_out)
    if state.gangs.changed_queues:
        session.events += unenforced(state, config)
    if state.told_faults != state.network.faults:
        session.events += broken_topology(state)
    is_busy = (
        committed.binds or committed.evicted or nominations or closing.statuses or session.errors
    )
    # Gates are named again until the API server shows their pods without them.
    is_settled = not (is_busy or session.opened or state.parked.stale or session.untried)
    state.settled = (state.parked.version, config) if is_settled else None
    return _result(closing, nominations)


def _act(session: Session, config: Config, measure: Measure) -> Exception | None:
    """Run the actions; an exception that ended them and concerns no single gang."""
    last = len(config.actions)
    try:
        for place, (spec, arguments) in enumerate(config.actions, 1):
            if session.time.is_limited:
                session.begin_action(is_last=place == last)
            if measure is unmeasured:
                spec.run(session, arguments)
                continue
            with measure("action", spec.name):
                spec.run(session, arguments)
    except JobError as error:
        session.fail(error.key, error)
    except Exception as error:
        return error
    session.time.end_action()
    return None


def _nothing_decided(state: ClusterState, error: Exception | None = None) -> CycleResult:
    gangs = state.gangs
    return CycleResult(
        MappingProxyType(gangs.statuses), MappingProxyType(gangs.pending), error=error
    )


def _result(
    closing: Closing, nominations: Mapping[str, str], error: Exception | None = None
) -> CycleResult:
    session, gangs = closing.session, closing.session.state.gangs
    return CycleResult(
        MappingProxyType(gangs.statuses),
        MappingProxyType(gangs.pending),
        binds=session.committed.binds,
        pipelined=session.pipelined,
        evicted=session.committed.evicted,
        opened=sorted(session.opened),
        nominations=nominations,
        pod_groups=closing.statuses,
        urgent=closing.urgent,
        pods=closing.pods,
        started=closing.started,
        events=session.events,
        decided=session.decided,
        preemptions=session.preemptions,
        transactions=session.transactions,
        errors=session.errors,
        unreached=len(session.untried),
        error=error,
    )
