"""Ports for processes: nobody else gets them, neither by chance nor from another run of the tests."""

import socket
import subprocess
import sys
from contextlib import closing

from tests.support.controlplane.builder import REPOSITORY
from tests.support.ports import free_port, free_ports

GIVEN = "from tests.support.ports import free_ports; print(*free_ports(250))"


def given_elsewhere() -> set[int]:
    """What another run is given while this one goes on."""
    ran = subprocess.run(
        [sys.executable, "-c", GIVEN], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return {int(port) for port in ran.stdout.split()}


def test_a_port_is_given_once() -> None:
    here = {free_port(), *free_ports(3)}
    elsewhere = given_elsewhere()
    assert len(here) == 4
    assert len(elsewhere) == 250
    assert here.isdisjoint(elsewhere)


def test_a_port_that_a_server_has_is_not_given() -> None:
    before = next(port for port in iter(free_port, None) if (port + 1) % 100)
    with closing(socket.create_server(("127.0.0.1", before + 1))):
        assert free_port() > before + 1


def test_no_system_hands_it_out_by_itself() -> None:
    """Linux begins at 32768, others at 49152."""
    assert free_port() < 32_768
