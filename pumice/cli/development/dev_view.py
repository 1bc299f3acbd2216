"""The admission view on the store of an embedded API server."""

from collections.abc import Collection
from typing import Any

import msgspec

from pumice.api.kinds import Kind
from pumice.embedded import Store
from pumice.webhook.view import READ_AS, AdmissionView

__all__ = ["StoreView"]


class StoreView(AdmissionView):
    """An admission view without delay: it reads the store at each call.

    Attributes:
        store: The store; set after the server is created, because the server needs admission first.
    """

    def __init__(self, store: Store | None = None) -> None:
        """Create a view on a store; without one the cluster is empty."""
        self.store = store

    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """An object, or None if it does not exist."""
        found = self.store.get(kind, name, namespace) if self.store is not None else None
        return None if found is None else msgspec.convert(found, READ_AS[kind])

    def list(self, kind: Kind) -> Collection[Any]:
        """All objects of a kind."""
        found = self.store.list(kind) if self.store is not None else ()
        return [msgspec.convert(each, READ_AS[kind]) for each in found]

    def knows(self, kind: Kind) -> bool:
        """True: all kinds are looked up."""
        del kind
        return True
