"""A server starts quickly and small, and leaves the process as it was."""

import gc
import subprocess
import sys

import pytest

from pumice.cli import lean

LOADING = """
import sys
from pumice.cli import lean
with lean.importing():
    import structlog
hidden = "rich" not in sys.modules
import rich
structlog.dev.ConsoleRenderer()
print(hidden, rich.__name__)
"""


def test_logs_do_without_what_draws_tracebacks_for_people() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["True", "rich"], ran.stderr


@pytest.mark.usefixtures("freezing_again")
def test_collecting_garbage_goes_on_as_before() -> None:
    before = gc.get_threshold()
    with lean.importing():
        assert not gc.isenabled()
    assert gc.isenabled()
    with lean.settled():
        assert gc.get_threshold()[0] > before[0]
        assert gc.get_freeze_count() > 0
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


@pytest.mark.usefixtures("freezing_again")
def test_what_was_imported_is_not_looked_at_again() -> None:
    with lean.importing():
        imported = [object(), []]
    assert gc.is_tracked(imported)
    assert all(each is not imported for each in gc.get_objects())


THREADS = """
from pathlib import Path
from pumice.cli import lean
with lean.importing():
    import numpy
print(len(list(Path("/proc/self/task").iterdir())))
"""


def test_numpy_starts_no_threads() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["1"], ran.stderr


def test_who_collects_no_garbage_does_not_begin_to() -> None:
    gc.disable()
    try:
        with lean.importing():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


AUTHORITIES = """
import ssl
from pumice.cli import lean
before = dict(ssl.SSLContext.__dict__)
with lean.importing_http():
    import aiohttp.connector as connector
trusted = connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509_ca"]
print(trusted, connector._SSL_CONTEXT_VERIFIED.verify_mode.name, dict(ssl.SSLContext.__dict__) == before)
"""


def test_authorities_of_the_system_are_not_read_for_contexts_that_are_not_used() -> None:
    """A context without authorities trusts no server; those that Pumice makes later are as always."""
    ran = subprocess.run(
        [sys.executable, "-c", AUTHORITIES], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["0", "CERT_REQUIRED", "True"], ran.stderr
