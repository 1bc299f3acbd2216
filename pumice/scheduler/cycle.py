"""One scheduling cycle: a function of state, configuration and a moment.

The same state and configuration give the same result, to the last tie: nodes go by name, gangs by age and
then name, pods by index, age and then name.
"""

from types import MappingProxyType

from pumice.scheduler.closing import Closing, unenforced
from pumice.scheduler.opening import open_session
from pumice.scheduler.options import Config
from pumice.scheduler.results import CycleResult
from pumice.scheduler.state import ClusterState

__all__ = ["run_cycle"]


def run_cycle(state: ClusterState, config: Config, now: float) -> CycleResult:
    """Decide about everything that waits.

    What is decided is assumed in the state (see `ClusterState`). A cycle after which nothing has changed,
    with the same configuration, is not run again before something is due to be written.

    Args:
        state: The cluster; between cycles nothing tentative is left in it.
        config: What is configured.
        now: The moment, UNIX seconds; it stamps conditions and says which of them are due.
    """
    if state.is_settled(config, now):
        return _result(state)
    state.settle()
    state.cycles += 1
    if state.config is not config:
        state.config = config
        state.gains.anyone = True
    session = open_session(state, config, now)
    for spec, arguments in config.actions:
        spec.run(session, arguments)
    session.close()
    state.gains.clear()
    state.assume_pods([*session.outbox.binds, *session.outbox.evicted])
    closing = Closing(session)
    closing.run()
    events = [*closing.events, *unenforced(state, config.enforced)]
    is_quiet = not (session.outbox.binds or session.outbox.evicted or closing.statuses)
    state.settled = (state.version, config) if is_quiet else None
    return CycleResult(
        binds=session.outbox.binds,
        pipelined=session.pipelined,
        evicted=session.outbox.evicted,
        pod_groups=closing.statuses,
        all_pod_groups=MappingProxyType(state.statuses),
        pending=MappingProxyType(state.pending),
        pods=closing.pods,
        events=events,
        decided=session.decided,
    )


def _result(state: ClusterState) -> CycleResult:
    """Nothing new; what waited still waits."""
    return CycleResult(
        binds={},
        pipelined={},
        evicted=[],
        pod_groups={},
        all_pod_groups=MappingProxyType(state.statuses),
        pending=MappingProxyType(state.pending),
        pods={},
        events=[],
        decided=0,
    )
