"""Faster start of verbs, and less memory for servers."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

_FOR_PEOPLE = "rich"
"""structlog formats tracebacks with this library if it is installed, which costs 3 MiB and a tenth of the start. Servers log them as plain text."""

_AUTHORITY_LOADERS = ("load_default_certs", "set_default_verify_paths")
"""aiohttp creates two TLS contexts at import and reads the system's certificate authorities for both, which takes a tenth of the start. Pumice's connections have their own contexts, so these two need no authorities."""

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
"""NumPy brings a library for products of matrices, which starts a thread for each processor at import. Pumice multiplies small ones alone, and the threads would take a sixth of the start."""

_YOUNG_OBJECTS = 10_000
"""Number of new objects before the garbage collector runs. Imports leave no garbage, and a request creates a thousand objects without cycles, so with the default of 700 most collections would find nothing; they would take an eighth of the start."""


@contextmanager
def importing() -> Iterator[None]:
    """Import without libraries for terminals, without garbage collection, also later of what exists then, and without threads for matrices."""
    os.environ.setdefault(*_ONE_THREAD)
    hidden = _FOR_PEOPLE not in sys.modules and not (sys.stderr and sys.stderr.isatty())
    if hidden:
        sys.modules[_FOR_PEOPLE] = None  # type: ignore[assignment] # which says: not installed
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()
        if hidden:
            del sys.modules[_FOR_PEOPLE]


@contextmanager
def importing_http() -> Iterator[None]:
    """Import a server, or a client of a cluster; like `importing`."""
    import ssl

    with importing(), ExitStack() as stack:
        if "aiohttp.connector" not in sys.modules:
            for name in _AUTHORITY_LOADERS:
                stack.enter_context(_replaced(ssl.SSLContext, name, _load_nothing))
        yield


@contextmanager
def _replaced(owner: object, name: str, function: Callable[..., object]) -> Iterator[None]:
    """Replace a function of a module or class inside the block."""
    own = vars(owner).get(name)
    setattr(owner, name, function)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


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
def not_collecting() -> Iterator[None]:
    """Turn garbage collection off: manifests have no cycles, and collecting takes a fifth of the time of `lint`."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()


@contextmanager
def settled() -> Iterator[None]:
    """Run a server after freezing all present objects, so that the collector does not scan them again."""
    gc.freeze()
    try:
        with collecting_rarely():
            yield
    finally:
        gc.unfreeze()
