"""Settings of the controller's process."""

from dataclasses import dataclass

from pumice.plugins.settings import DEFAULT, PluginSettings

__all__ = ["ControllerSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """How the controller works.

    Attributes:
        workers: Jobs that are worked on at once.
        concurrent_writes: Writes of one Job under way at once, pods above all.
        namespace: Look after this namespace only; after all when None.
        leader_elect: Whether to work only while holding the Lease.
        lease_name: Name of the Lease.
        lease_namespace: Its namespace.
        identity: Name of this process among the candidates.
        plugins: What the cluster's operator has decided about job plugins.
    """

    workers: int = 8
    concurrent_writes: int = 16
    namespace: str | None = None
    leader_elect: bool = False
    lease_name: str = "pumice-controller"
    lease_namespace: str = "default"
    identity: str = "pumice-controller"
    plugins: PluginSettings = DEFAULT
