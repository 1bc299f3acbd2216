"""Leader election: one of several processes leads by holding a Lease.

The rules are client-go's. A candidate takes a Lease that has no holder, or whose holder has not renewed it for a lease
duration *as seen by the candidate's own clock* (clocks of machines differ, so the times written in the Lease are for
people). The holder renews every retry period; if it could not renew within the renew deadline, it stops leading while
its lease is still valid for others:

    retry period (2 s)  <  renew deadline (10 s)  <  lease duration (15 s)

The difference of the last two is the time that the work has to end after its cancellation. At shutdown the Lease is
released. A candidate reads it every half second, or every retry period if that is shorter, so it takes over soon.

The election runs in a thread beside the work (`elected`). So that work which hangs does not keep the Lease for ever, the
election asks whether it does, and renews no more.

The official package has `kubernetes.aio.leaderelection`; it is not used because it neither releases the Lease nor ends
when its work ends, fails on a broken connection, writes local time as if it were UTC, does not count transitions, and
needs the generated models.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pumice.api.kinds import LEASE
from pumice.cluster.client import Client, Object
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.errors import AlreadyExists, ApiError, Conflict, NotFound

logger = logging.getLogger(__name__)

_CANDIDATE_PERIOD = 0.5
"""Maximum time between two reads of another holder's Lease, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """The three times of an election, in seconds.

    Attributes:
        lease_duration: Time without renewal after which others may take over.
        renew_deadline: Time without renewal after which the holder stops leading.
        retry_period: Time between two renewals.

    Raises:
        ValueError: The order of the times is wrong.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError(
                "leader election needs retry period < renew deadline < lease duration, found "
                f"{self.retry_period:g} s, {self.renew_deadline:g} s, {self.lease_duration:g} s"
            )


DEFAULT_TIMES = LeaseTimes()
"""The times of client-go."""


class LeaderElection:
    """A candidate. At the end it must `release` the Lease."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        identity: str,
        *,
        times: LeaseTimes = DEFAULT_TIMES,
        clock: Clock | None = None,
        hangs: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Create a candidate; `run` takes part in the election.

        Args:
            client: Session with the API server.
            name: The Lease's name.
            namespace: The Lease's namespace.
            identity: This process's name; two candidates must never share one.
            times: How long the Lease lasts, and how often it is renewed.
            clock: Tells the time.
            hangs: Returns why the process cannot work; it then neither takes nor renews the Lease.
        """
        self.identity = identity
        self._client = client
        self._name = name
        self._namespace = namespace
        self._times = times
        self._clock = clock or SystemClock()
        self._hangs = hangs
        self._lease: Object | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None

    @property
    def leading(self) -> bool:
        """True if this process leads and has renewed the Lease within the renew deadline, by its own clock.

        After the process was stopped (SIGSTOP, a suspended machine) this is False immediately, before the work is
        cancelled. Check it before a write that only the leader may send; any thread may.
        """
        renewed_at = self._renewed_at
        if renewed_at is None:
            return False
        return self._clock.monotonic() < renewed_at + self._times.renew_deadline

    @property
    def leader(self) -> str:
        """The last known holder of the Lease; empty if there was none."""
        return _holder(self._lease)

    async def run(self, while_leading: Callable[[], Awaitable[None]]) -> None:
        """Take part in the election forever, and work while leading.

        Returns when the work returns. When leadership is lost the work is cancelled and awaited,
        and this process is a candidate again.

        Raises:
            Exception: The exception of the work.
        """
        while not await self.lead_once(while_leading):
            pass

    async def lead_once(self, while_leading: Callable[[], Awaitable[None]]) -> bool:
        """Wait until this process leads, and work while it does; see `run`.

        Returns:
            True when the work has returned, False when leadership was lost.
        """
        while self._hangs() is not None or not await self._try():
            await self._clock.sleep(min(_CANDIDATE_PERIOD, self._times.retry_period))
        logger.info("%s leads %s", self.identity, self._name)
        if await self._lead(while_leading):
            return True
        logger.warning("%s no longer leads %s", self.identity, self._name)
        return False

    async def release(self) -> None:
        """Release the Lease if it is held; after a failure the successor waits for the lease duration."""
        if self._renewed_at is None or self._lease is None:
            return
        self._renewed_at = None
        lease = self._lease
        try:
            async with asyncio.timeout(self._times.retry_period):
                try:
                    await self._client.update(LEASE, self._with_holder(lease, ""))
                except Conflict:
                    # A renewal that was cut off had reached the server after all.
                    lease = await self._client.get(LEASE, self._name, self._namespace)
                    if _holder(lease) != self.identity:
                        return
                    await self._client.update(LEASE, self._with_holder(lease, ""))
        except (ApiError, TimeoutError) as error:
            logger.info("giving up lease %s: %s", self._name, error)
        else:
            logger.info("%s gave up %s", self.identity, self._name)

    async def _lead(self, while_leading: Callable[[], Awaitable[None]]) -> bool:
        """Work and renew; True when the work is done, False when leadership is lost."""
        work = asyncio.ensure_future(_awaited(while_leading))
        renewal = asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait([work, renewal], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                renewal.result()
                return False
            await work
            return True
        finally:
            await self._stop(work)
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
            await self.release()

    async def _stop(self, work: asyncio.Future[None]) -> None:
        """Cancel the work and wait for its end; log if that takes until others may lead."""
        if work.done():
            return
        work.cancel()
        margin = self._times.lease_duration - self._times.renew_deadline
        await asyncio.wait([work], timeout=margin)
        if not work.done():
            logger.error(
                "%s: the work still runs %.0f s after it was cancelled; another process may lead",
                self._name,
                margin,
            )
            await asyncio.wait([work])
        if not work.cancelled() and (error := work.exception()) is not None:
            logger.error("%s: the work failed while it was stopped", self._name, exc_info=error)

    async def _renew(self) -> None:
        """Renew; return when that has not succeeded for the renew deadline, or when the work hangs."""
        while self._renewed_at is not None:
            deadline = self._renewed_at + self._times.renew_deadline
            remaining = deadline - self._clock.monotonic()
            await self._clock.sleep(min(self._times.retry_period, max(remaining, 0.0)))
            remaining = deadline - self._clock.monotonic()
            if remaining <= 0:
                logger.error("%s: not renewed for %.0f s", self._name, self._times.renew_deadline)
                self._renewed_at = None
            elif (problem := self._hangs()) is not None:
                logger.error("%s: not renewed: %s", self._name, problem)
                self._renewed_at = None
            elif not await self._try(remaining) and self.leader not in ("", self.identity):
                self._renewed_at = None  # another process holds it: there is nothing to wait for

    async def _try(self, patience: float | None = None) -> bool:
        """Take or renew the Lease once; True when this process holds it afterwards."""
        # Counted from before the request, so that this process never assumes the lease for longer than others.
        begun = self._clock.monotonic()
        try:
            async with asyncio.timeout(
                self._times.renew_deadline if patience is None else patience
            ):
                held = await self._take_or_renew()
        except (Conflict, AlreadyExists):
            return False  # another candidate was faster; the next read shows it
        except (ApiError, TimeoutError) as error:
            logger.warning("lease %s: %s", self._name, str(error) or "no answer in time")
            return False
        if held:
            self._renewed_at = begun
        return held

    async def _take_or_renew(self) -> bool:
        if self._renewed_at is not None and self._lease is not None:
            try:
                self._observe(await self._write(self._lease))
            except Conflict:
                pass  # the observed state is outdated; run another pass
            else:
                return True
        try:
            self._observe(await self._client.get(LEASE, self._name, self._namespace))
        except NotFound:
            self._observe(await self._client.create(LEASE, self._with_holder(None, self.identity)))
            return True
        assert self._lease is not None
        if self.leader not in ("", self.identity) and not self._expired(self._lease):
            return False
        self._observe(await self._write(self._lease))
        return True

    async def _write(self, lease: Object) -> Object:
        return await self._client.update(LEASE, self._with_holder(lease, self.identity))

    def _observe(self, lease: Object) -> None:
        """Store a Lease with the time since when it is unchanged."""
        if self._lease is None or self._lease.get("spec") != lease.get("spec"):
            self._seen_at = self._clock.monotonic()
        self._lease = lease

    def _expired(self, lease: Object) -> bool:
        """True if a Lease has not changed for its lease duration."""
        duration = (lease.get("spec") or {}).get(
            "leaseDurationSeconds"
        ) or self._times.lease_duration
        return self._clock.monotonic() >= self._seen_at + float(duration)

    def _with_holder(self, lease: Object | None, holder: str) -> Object:
        """The Lease to write."""
        now = datetime.fromtimestamp(self._clock.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if lease is None:
            lease = {
                **LEASE.type_meta,
                "metadata": {"name": self._name, "namespace": self._namespace},
            }
        spec: dict[str, Any] = dict(lease.get("spec") or {})
        if spec.get("holderIdentity") != holder and holder:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = spec.get("leaseTransitions", -1) + 1
        spec["holderIdentity"] = holder
        spec["renewTime"] = now
        spec["leaseDurationSeconds"] = math.ceil(self._times.lease_duration) if holder else 1
        return {**lease, "spec": spec}


def _holder(lease: Object | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


async def _awaited(start: Callable[[], Awaitable[None]]) -> None:
    await start()
