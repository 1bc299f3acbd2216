"""Faster start of verbs, and less memory for servers."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

__all__ = ["collecting_rarely", "importing", "settled"]

_FOR_PEOPLE = "rich"
"""structlog formats tracebacks with this library if it is installed, which costs 3 MiB and a tenth of the start. Servers log them as plain text."""

_AUTHORITY_LOADERS = ("load_default_certs", "set_default_verify_paths")
"""aiohttp creates two TLS contexts at import and reads the system's certificate authorities for both, which takes a tenth of the start. Pumice's connections have their own contexts, so these two need no authorities."""

_YOUNG_OBJECTS = 10_000
"""Number of new objects before the garbage collector runs. Imports leave no garbage, and a request creates a thousand objects without cycles, so with the default of 700 most collections would find nothing; they would take an eighth of the start."""


@contextmanager
def importing() -> Iterator[None]:
    """Import a server, or a client of a cluster, without libraries for terminals and without garbage collection."""
    import ssl

    hidden = _FOR_PEOPLE not in sys.modules and not sys.stderr.isatty()
    if hidden:
        sys.modules[_FOR_PEOPLE] = None  # type: ignore[assignment] # which says: not installed
    collecting = gc.isenabled()
    gc.disable()
    try:
        with ExitStack() as stack:
            if "aiohttp.connector" not in sys.modules:
                for name in _AUTHORITY_LOADERS:
                    stack.enter_context(_replaced(ssl.SSLContext, name, _load_nothing))
            yield
    finally:
        if collecting:
            gc.enable()
        if hidden:
            del sys.modules[_FOR_PEOPLE]


@contextmanager
def _replaced(cls: type, name: str, function: Callable[..., None]) -> Iterator[None]:
    """Replace a method inside the block."""
    own = cls.__dict__.get(name)
    setattr(cls, name, function)
    try:
        yield
    finally:
        if own is None:
            delattr(cls, name)
        else:
            setattr(cls, name, own)


def _load_nothing(*_: object, **__: object) -> None:
    """Replacement for the loading of certificate authorities."""


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Run a verb with few collections of garbage."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def settled() -> Iterator[None]:
    """Run a server after freezing all present objects, so that the collector does not scan them again."""
    gc.freeze()
    try:
        with collecting_rarely():
            yield
    finally:
        gc.unfreeze()
