"""The beginning of a session: every configured plugin registers what it has to say."""

from pumice.scheduler.options import Config
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.session import Session
from pumice.scheduler.state import ClusterState

__all__ = ["open_session"]


def open_session(state: ClusterState, config: Config, now: float) -> Session:
    """Begin a session with the plugins of a configuration, in the order of their tiers.

    Args:
        state: The cluster, settled.
        config: What is configured.
        now: The moment, UNIX seconds.

    Raises:
        Exception: A plugin failed; the state is as before.
    """
    session = Session(state, frozenset(spec.name for spec, _ in config.actions), now)
    try:
        for option in config.plugins:
            plugin = option.spec.build(option.arguments)
            plugin.open(
                session.view,
                Registrar(session.extensions, option.spec.name, option.tier, option.switches),
            )
    except Exception:
        session.close()
        raise
    return session
