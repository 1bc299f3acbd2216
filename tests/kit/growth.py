"""What an object keeps, to see that it does not grow for ever."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sized
from functools import partial
from types import FunctionType, MethodType

_FOLLOWED = ("pumice.", "prometheus_client.")
"""Modules whose objects are looked into."""
_CONTAINERS = (dict, list, tuple, set, frozenset, deque)


def sizes_of(root: object) -> Counter[str]:
    """How many entries the containers below an object have, by the attributes on the way to them.

    It goes through containers of Python, objects of Pumice and metrics, and what functions are bound to.
    """
    sizes: Counter[str] = Counter()
    seen, found = {id(root)}, deque([(root, type(root).__name__)])
    while found:
        parent, path = found.popleft()
        for name, each in _below(parent):
            if id(each) in seen or isinstance(each, type):
                continue
            seen.add(id(each))
            way = f"{path}.{name}" if name else path
            if isinstance(each, Sized) and not isinstance(each, str | bytes):
                sizes[way] += len(each)
            found.append((each, way))
    return sizes


def _below(obj: object) -> Iterator[tuple[str, object]]:
    """What an object refers to, with the names of its attributes."""
    if isinstance(obj, Mapping):
        yield from (("", each) for each in (*obj.keys(), *obj.values()))
    elif isinstance(obj, _CONTAINERS):
        assert isinstance(obj, Iterable)
        yield from (("", each) for each in obj)
    elif isinstance(obj, MethodType):
        yield "", obj.__self__
    elif isinstance(obj, partial):
        yield from (("", each) for each in (obj.func, *obj.args))
    elif isinstance(obj, FunctionType):
        yield from (("", cell.cell_contents) for cell in obj.__closure__ or ())
    elif type(obj).__module__.startswith(_FOLLOWED):
        slots = [name for each in type(obj).__mro__ for name in getattr(each, "__slots__", ())]
        yield from ((name, getattr(obj, name)) for name in slots if hasattr(obj, name))
        yield from getattr(obj, "__dict__", {}).items()
