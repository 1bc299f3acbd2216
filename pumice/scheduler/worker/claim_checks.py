"""Whether the claims of a gang are bound as decided, and why they cannot be any more: looks at what the watches show, writes nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pumice.api.meta import version_number
from pumice.api.nodes import Node
from pumice.api.volumes import PersistentVolumeClaim
from pumice.scheduler.model.claim_choices import VolumeChoice
from pumice.scheduler.worker.bindings import why_unfit
from pumice.scheduler.worker.claim_writes import BindingError, is_for
from pumice.scheduler.worker.context import TermContext

_LISTED = 5
"""Claims that a reason names at most."""


@dataclass(slots=True)
class ClaimBatch:
    """What a cycle decided about a gang, some of whose claims wait.

    Attributes:
        gang: Key of the gang; that of the pod where there is none.
        nodes: Their nodes as they were when decided.
        claims: What the claims are to be bound to.
        due: Until when they must be bound, by the monotonic clock.
        restores: How often the API server had been restored from a backup.
        written: Claims for which something has been sent, and the version that it made; empty while that is not known.
        failure: Why it failed; None while it has not.
    """

    gang: str
    binds: dict[str, str]
    uids: dict[str, str]
    nodes: dict[str, Node | None]
    claims: dict[str, VolumeChoice]
    claim_uids: dict[str, str]
    due: float
    restores: int
    written: dict[str, str] = field(default_factory=dict)
    failure: str | None = None


class ClaimChecks:
    """Looks at the claims of gangs, their pods, nodes and volumes."""

    def __init__(self, context: TermContext, timeout: Callable[[], float | None]) -> None:
        """Look at what a leadership works with; arguments as for `ClaimBinder`."""
        self._context = context
        self._timeout = timeout

    @property
    def restores(self) -> int:
        """How often the API server has been restored from a backup; what was written before may be gone."""
        caches = self._context.caches
        return caches.claims.reflector.restores + caches.volumes.reflector.restores

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """A claim, by `namespace/name`."""
        return self._context.caches.claims.named(key)

    def why_unfit(self, batch: ClaimBatch, node: str) -> str | None:
        """Why a node of a gang takes no pods any more; None if it does."""
        return why_unfit(node, batch.nodes.get(node), self._context.caches.nodes.get(node))

    def are_bound(self, batch: ClaimBatch) -> bool:
        """Whether all claims are bound, to volumes that the nodes of their pods reach.

        Raises:
            BindingError: Binding them as decided has become impossible.
        """
        for key, uid in batch.uids.items():
            pod = self._context.caches.pods.named(key)
            if pod is None or pod.metadata.uid != uid or pod.metadata.deletion_timestamp:
                raise BindingError(f'pod "{key.partition("/")[2]}" has been deleted')
        for node in batch.nodes:
            if why := self.why_unfit(batch, node):
                raise BindingError(why)
        bound = True
        for key, choice in batch.claims.items():
            claim, name = self.claim(key), key.partition("/")[2]
            if claim is None or claim.metadata.uid != batch.claim_uids.get(key):
                raise BindingError(f'persistentvolumeclaim "{name}" has been deleted')
            if claim.status.phase == "Lost":
                raise BindingError(f'persistentvolumeclaim "{name}" has lost its volume')
            if claim.is_bound:
                bound &= self._is_reached(key, claim, choice)
            else:
                bound = False
                self._check(batch, claim, key)
        return bound

    def _is_reached(self, key: str, claim: PersistentVolumeClaim, choice: VolumeChoice) -> bool:
        """Whether the volume of a bound claim is known, and reached by the node."""
        volume = claim.spec.volume_name
        if self._context.caches.volumes.get(volume) is None:
            return False
        if not self._context.state.claims.is_reached_by(key, choice.node):
            raise BindingError(
                f'node "{choice.node}" does not reach volume "{volume}", which '
                f'persistentvolumeclaim "{key.partition("/")[2]}" is bound to'
            )
        return True

    def _check(self, batch: ClaimBatch, claim: PersistentVolumeClaim, key: str) -> None:
        """Fail if the watch shows that what was written for a claim is not there any more."""
        choice, version = batch.claims[key], batch.written.get(key)
        if not version:
            return
        is_restored = batch.restores != self.restores
        name = claim.metadata.name
        if not choice.volume:
            is_shown = version_number(claim.metadata.resource_version) >= version_number(version)
            if (is_shown or is_restored) and claim.selected_node != choice.node:
                raise BindingError(f'provisioning failed for persistentvolumeclaim "{name}"')
            return
        volume = self._context.caches.volumes.get(choice.volume)
        if volume is None:
            raise BindingError(f'persistentvolume "{choice.volume}" has been deleted')
        is_shown = version_number(volume.metadata.resource_version) >= version_number(version)
        if (is_shown or is_restored) and not is_for(volume, claim):
            raise BindingError(f'persistentvolume "{choice.volume}" is not for "{name}" any more')

    def why_late(self, batch: ClaimBatch) -> str:
        """The failure of a gang whose time is over: which claims are not bound."""
        waiting = sorted(
            key.partition("/")[2]
            for key in batch.claims
            if (claim := self.claim(key)) is None or not claim.is_bound
        )
        listed = ", ".join(f'"{name}"' for name in waiting[:_LISTED])
        more = ", …" if len(waiting) > _LISTED else ""
        return (
            f"binding volumes: timed out after {self._timeout() or 0.0:.0f} s for "
            f"persistentvolumeclaim {listed}{more}; look at the provisioner of the storage class"
        )
