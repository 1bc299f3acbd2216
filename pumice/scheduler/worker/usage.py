"""Saves what namespaces have used (plugin `fairshare`) in a ConfigMap, so that a restart forgets an interval of it at most.

What was saved is read before the first cycle of a term, and nothing is written before. A state that cannot be read is set aside under another key
of the ConfigMap, and usage begins at 0. Without pods that hold anything usage only decays, which follows from what is saved; nothing is written then.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import msgspec

from pumice.api.kinds import CONFIG_MAP
from pumice.api.meta import Raw
from pumice.cluster.errors import ApiError, NotFound
from pumice.cluster.events import Reference
from pumice.scheduler import Config
from pumice.scheduler.plugins.fairshare import NAME, UsageStorage, storage
from pumice.scheduler.state.usage import STATE_KEY, SavedUsage
from pumice.scheduler.worker.context import TermContext

logger = logging.getLogger(__name__)

_SET_ASIDE = "unreadable.json"
_LONGEST_SET_ASIDE = 256 * 1024
"""Characters of a state that cannot be read which are kept."""

_LOOK = 5.0
"""Seconds between two looks whether the configuration wants usage to be saved, and for which the first cycle waits for what was saved."""


class UsageKeeper:
    """Reads and writes the ConfigMap in one leadership term."""

    def __init__(self, context: TermContext, config: Callable[[], Config], namespace: str) -> None:
        """Create a keeper; its `run` must run. The ConfigMap is in a namespace unless the configuration says so."""
        self._context = context
        self._usage = context.state.usage
        self._config = config
        self._namespace = namespace
        self._read: UsageStorage | None = None
        self._written = -1
        self._problem = ""

    async def begin(self) -> None:
        """Read what was saved, so that the first cycle knows it; an API server that does not answer holds it up for some seconds at most."""
        where = self._where()
        if where is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._take_up(where)

    async def run(self) -> None:
        """Write at most once an interval, until cancelled."""
        while True:
            where = self._where()
            if where is None:
                self._read = None
            elif self._read is not None and where.place == self._read.place:
                await self._save(where)
            else:
                await self._take_up(where)
            is_read = where is not None and self._read is not None
            await self._context.clock.sleep(where.interval if where and is_read else _LOOK)

    def _where(self) -> UsageStorage | None:
        option = self._config().plugin(NAME)
        found = storage(option.arguments) if option is not None else None
        if found is not None and not found.namespace:
            found = msgspec.structs.replace(found, namespace=self._namespace)
        return found

    async def _take_up(self, where: UsageStorage) -> None:
        """Read what was saved."""
        request = self._context.client.get(CONFIG_MAP, where.name, where.namespace)
        try:
            found = await request
        except NotFound:
            found = {}
        except ApiError as error:
            self._report(where, "UsageNotRead", f"usage of namespaces cannot be read: {error}")
            return
        text = (found.get("data") or {}).get(STATE_KEY)
        if text:
            try:
                self._usage.restore(SavedUsage.read(text))
            except msgspec.MsgspecError as error:
                await self._set_aside(where, text, error)
        self._read, self._written, self._problem = where, -1, ""

    async def _set_aside(self, where: UsageStorage, text: str, error: Exception) -> None:
        message = f"key {STATE_KEY} cannot be read ({error}); it is kept under {_SET_ASIDE}, and the usage of all namespaces begins at 0"
        self._report(where, "UsageUnreadable", message)
        data: Raw = {STATE_KEY: None, _SET_ASIDE: text[:_LONGEST_SET_ASIDE]}
        try:
            await self._patch(where, data)
        except ApiError as failure:
            logger.warning("ConfigMap %s: %s", "/".join(where.place), failure)

    async def _save(self, where: UsageStorage) -> None:
        usage = self._usage
        is_changed = usage.version != self._written or usage.changes_by_itself
        if usage.rules is None or not is_changed or not self._context.leads():
            return
        version = usage.version
        usage.moment = max(usage.moment, self._context.clock.wall())
        data: Raw = {STATE_KEY: usage.saved().encoded()}
        try:
            try:
                await self._patch(where, data)
            except NotFound:
                await self._create(where, data)
        except ApiError as error:
            self._report(where, "UsageNotSaved", f"usage of namespaces cannot be saved: {error}")
        else:
            self._written, self._problem = version, ""

    async def _patch(self, where: UsageStorage, data: Raw) -> None:
        client = self._context.client
        body = {"data": data}
        request = client.patch(CONFIG_MAP, where.name, where.namespace, body, metadata_only=True)
        await self._context.sent.send(request)

    async def _create(self, where: UsageStorage, data: Raw) -> None:
        manifest = {
            "apiVersion": CONFIG_MAP.api_version,
            "kind": CONFIG_MAP.kind,
            "metadata": {"name": where.name, "namespace": where.namespace},
            "data": data,
        }
        request = self._context.client.create(CONFIG_MAP, manifest, metadata_only=True)
        await self._context.sent.send(request)

    def _report(self, where: UsageStorage, reason: str, message: str) -> None:
        """Tell of a problem once, until something else happens."""
        if message == self._problem:
            return
        self._problem = message
        logger.warning("ConfigMap %s: %s", "/".join(where.place), message)
        about = Reference(CONFIG_MAP, where.name, where.namespace)
        self._context.recorder.record(about, "Warning", reason, message)
