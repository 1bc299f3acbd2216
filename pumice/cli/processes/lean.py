"""A quick start and a small process, for what runs for long."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

__all__ = ["importing", "settled"]

_FOR_PEOPLE = "rich"
"""structlog draws tracebacks with it where it is installed, at the price of 3 MiB and a tenth of the start;
machines read them as text."""

_AUTHORITY_LOADERS = ("load_default_certs", "set_default_verify_paths")
"""aiohttp makes two TLS contexts when it is imported and reads the system's certificate authorities for both, which takes a
tenth of the start. Pumice's connections have contexts of their own; without authorities those two trust no server."""

_YOUNG_OBJECTS = 10_000
"""How many more objects than before there must be for the collector to look for circles among them. One
request makes a thousand and leaves none, so that a collection at the usual 700 would find nothing every time."""


@contextmanager
def importing() -> Iterator[None]:
    """Import a server: without what only a person at a terminal needs, and without collecting garbage.

    What is imported is no garbage, and looking for some in it takes an eighth of the start.
    """
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
    """A method that is another one for as long as the block lasts."""
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
    """In place of reading certificate authorities."""


@contextmanager
def settled() -> Iterator[None]:
    """Run a server: whatever is there by now stays, so the collector need not look at it again."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
