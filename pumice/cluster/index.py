"""Secondary keys of a cache: which objects belong to a node, a queue, an owner."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

__all__ = ["Index"]

T = TypeVar("T")


class Index(Generic[T]):
    """Maps keys that are computed from objects to the identities of these objects."""

    def __init__(self, keys: Callable[[T], Iterable[Hashable]]) -> None:
        """Create an empty index.

        Args:
            keys: Computes the keys of an object: none, one or several.
        """
        self._keys = keys
        # Dicts instead of sets: they keep the order of arrival, so that results are the same twice.
        self._filed: dict[Hashable, dict[tuple[str, str], None]] = {}
        self._under: dict[tuple[str, str], tuple[Hashable, ...]] = {}

    def keys_of(self, obj: T) -> tuple[Hashable, ...]:
        """The keys of an object, each once. Whatever the function raises is raised here, and nothing has changed."""
        return tuple(dict.fromkeys(self._keys(obj)))

    def put(self, identity: tuple[str, str], keys: tuple[Hashable, ...]) -> None:
        """Add an object with its keys, or update them after a change."""
        if self._under.get(identity) == keys:
            return
        self.remove(identity)
        self._under[identity] = keys
        for key in keys:
            self._filed.setdefault(key, {})[identity] = None

    def remove(self, identity: tuple[str, str]) -> None:
        """Remove an object."""
        for key in self._under.pop(identity, ()):
            filed = self._filed[key]
            del filed[identity]
            if not filed:
                del self._filed[key]

    def keys(self) -> list[Any]:
        """The keys under which something is filed, in the order in which they came up."""
        return list(self._filed)

    def find(self, key: Hashable) -> list[tuple[str, str]]:
        """Identities of the objects with a key."""
        return list(self._filed.get(key, ()))
