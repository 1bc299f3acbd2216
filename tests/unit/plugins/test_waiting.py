"""The wait step's script, run by real shells against real sockets."""

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pumice.plugins.settings import DEFAULT, PluginSettings
from pumice.plugins.waiting import wait_container
from tests.support.ports import free_port

NC = f"""#!{sys.executable}
import socket, sys
assert sys.argv[1:4] == ["-z", "-w", "2"], sys.argv
socket.create_connection((sys.argv[4], int(sys.argv[5])), 2)
"""
SHELLS = ["sh", "bash"]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server


def port_of(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    return port


class Image:
    """A directory with the programs that an image has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("date", "sleep", "timeout"):
            self.link(name, str(shutil.which(name)))

    def link(self, name: str, target: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        (self.folder / name).symlink_to(target)

    def program(self, name: str, text: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def has(self, tool: str) -> "Image":
        """Give the image one of the programs that can try a port."""
        if tool == "nc":
            self.program("nc", NC)
        else:
            self.link(tool, sys.executable if tool == "python3" else str(shutil.which(tool)))
        return self

    def run(
        self, *hosts: str, port: int, timeout: int = 0, shell: str = "sh"
    ) -> subprocess.CompletedProcess[str]:
        return self.run_for(hosts, port=port, timeout=timeout, shell=shell)

    def run_for(
        self, hosts: Sequence[str] | str, *, port: int, timeout: int = 0, shell: str = "sh"
    ) -> subprocess.CompletedProcess[str]:
        """Run it for hosts, or for those of a file."""
        step = wait_container("wait", hosts, port, settings=DEFAULT, timeout=timeout)
        return subprocess.run(
            [str(shutil.which(shell)), *step["command"][1:]],
            env={"PATH": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("tool", ["nc", "bash", "python3"])
def test_it_ends_when_all_answer(
    image: Image, listener: socket.socket, tool: str, shell: str
) -> None:
    port = port_of(listener)

    ran = image.has(tool).run("127.0.0.1", "localhost", port=port, shell=shell)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        f"127.0.0.1 answers on port {port}",
        f"localhost answers on port {port}",
    ]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("tool", ["nc", "bash", "python3"])
def test_it_gives_up_after_the_timeout(image: Image, tool: str, shell: str) -> None:
    port = free_port()

    ran = image.has(tool).run("127.0.0.1", port=port, shell=shell)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"gave up after 0 s: 127.0.0.1 does not answer on port {port}\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_hosts_are_the_first_words_of_a_file(
    image: Image, listener: socket.socket, tmp_path: Path, shell: str
) -> None:
    port, file = port_of(listener), tmp_path / "hostfile"
    file.write_text("127.0.0.1 slots=2\nlocalhost slots=2\n")

    ran = image.has("bash").run_for(str(file), port=port, shell=shell)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        f"127.0.0.1 answers on port {port}",
        f"localhost answers on port {port}",
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_one_host_of_a_file_that_does_not_answer_ends_it(
    image: Image, tmp_path: Path, shell: str
) -> None:
    port, file = free_port(), tmp_path / "hostfile"
    file.write_text("127.0.0.1 slots=2\nlocalhost slots=2\n")

    ran = image.has("bash").run_for(str(file), port=port, shell=shell)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"gave up after 0 s: 127.0.0.1 does not answer on port {port}\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_that_is_not_there_fails(image: Image, tmp_path: Path, shell: str) -> None:
    ran = image.has("bash").run_for(str(tmp_path / "none"), port=1, shell=shell)

    assert ran.returncode != 0
    assert "none" in ran.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_it_says_what_it_waits_for_until_that_is_there(
    image: Image, tmp_path: Path, shell: str
) -> None:
    there = tmp_path / "there"
    image.program("nc", f'#!/bin/sh\n[ "$5" = 7 ] && [ -e "{there}" ]\n')
    image.program("sleep", f'#!/bin/sh\n[ "$1" = 2 ] && : >"{there}"\n')

    ran = image.run("a-master-0.a", port=7, timeout=60, shell=shell)

    assert ran.returncode == 0
    assert ran.stdout.splitlines() == [
        "waiting for a-master-0.a to answer on port 7",
        "a-master-0.a answers on port 7",
    ]


def test_all_hosts_share_the_time(image: Image, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("100\n")
    image.program("date", f'#!/bin/sh\nread -r now <"{clock}"; echo "$now"\n')
    image.program("sleep", f'#!/bin/sh\nread -r now <"{clock}"; echo $((now + 5)) >"{clock}"\n')
    image.program("nc", f'#!/bin/sh\nread -r now <"{clock}"; [ "$4" = a ] && [ "$now" -ge 110 ]\n')

    ran = image.run("a", "b", port=7, timeout=20)

    assert ran.returncode == 1
    assert ran.stdout.splitlines() == [
        *["waiting for a to answer on port 7"] * 2,
        "a answers on port 7",
        *["waiting for b to answer on port 7"] * 2,
    ]
    assert ran.stderr == "gave up after 20 s: b does not answer on port 7\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_an_image_that_cannot_wait_says_so_at_once(image: Image, shell: str) -> None:
    ran = image.run("127.0.0.1", port=1, timeout=3600, shell=shell)

    assert ran.returncode == 1
    assert ran.stderr == "this image has no nc, no bash and no python3 to wait with\n"


def test_nothing_in_it_is_a_reference_that_kubernetes_replaces() -> None:
    """`$(NAME)` would be replaced where the container has a variable NAME, `$$` always."""
    step = wait_container("wait", ["h"], 1, settings=DEFAULT, timeout=1)
    script = step["command"][2]

    assert "$$" not in script
    references = re.findall(r"\$\(([^)]*)\)", script)
    assert references
    assert all(" " in each for each in references)


def test_image_resources_and_security_context_are_settings() -> None:
    settings = PluginSettings("registry.example/tools:1", {"limits": {"cpu": "1"}}, {})

    step = wait_container("wait", ["h"], 1, settings=settings, timeout=1)
    other = wait_container("wait", ["h"], 1, settings=settings, timeout=1, image="mine:2")

    assert step["image"] == "registry.example/tools:1"
    assert step["resources"] == {"limits": {"cpu": "1"}}
    assert "securityContext" not in step
    assert other["image"] == "mine:2"


def test_the_settings_themselves_are_out_of_reach() -> None:
    step = wait_container("wait", ["h"], 1, settings=DEFAULT, timeout=1)

    step["resources"]["requests"]["cpu"] = "64"

    assert DEFAULT.wait_resources["requests"]["cpu"] == "10m"
