"""The command as a process: what it does with its streams, what it imports, and that it is installed."""

import ast
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.certs.authority import Authority, generate_key


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pumice", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_reader_that_went_away_is_no_failure_of_pumice(tmp_path: Path) -> None:
    pods = "\n---\n".join(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\nspec: {{containers: []}}"
        for n in range(3000)
    )
    file = tmp_path / "pods.yaml"
    file.write_text(pods)
    command = f"{sys.executable} -m pumice lint {shlex.quote(str(file))} -o json | head -c 10"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ran.stdout == "[\n  {\n    "
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr


def test_a_closed_pipe_has_an_exit_code_of_its_own() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        ran = subprocess.run(
            [sys.executable, "-m", "pumice", "rules"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("rules", "pumice: cannot write: stdout is closed\n"),
        ("lint absent.yaml", "pumice lint: absent.yaml: no such file\n"),
        ("lint examples/pytorch.yaml 2>&-", ""),
    ],
)
def test_output_that_the_shell_closed_is_a_failure(verb: str, told: str) -> None:
    command = f"{sys.executable} -m pumice {verb} >&-"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, told)


@pytest.mark.parametrize(
    ("command", "code"), [("schema 2>&-", 0), ("lint - <&-", 2)], ids=["stderr", "stdin"]
)
def test_other_streams_that_the_shell_closed_are_empty(command: str, code: int) -> None:
    ran = subprocess.run(
        f"{sys.executable} -m pumice {command}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code
    assert ran.stderr == ("pumice lint: stdin: is empty, expected manifests\n" if code else "")
    assert ran.stdout.startswith("" if code else "KIND")


def test_a_full_disk_is_reported_in_one_line() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "pumice", "rules"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ran.returncode == 2
    assert ran.stderr == b"pumice: cannot write: No space left on device\n"


def test_what_a_terminal_cannot_show_is_written_in_other_signs() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pumice", "lint", "examples/mistakes/dependencies.yaml"],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, b"")
    assert rb"prepare \u2192 train \u2192 prepare" in ran.stdout


HELPING = """
import sys
before = {*sys.modules, *sys.stdlib_module_names}
from tests.kit.counting import calls
from pumice.cli import main
count = calls(lambda: main(["--help"]))
print((count, sorted(name for name in sys.modules if name.partition(".")[0] not in before)))
"""

NEEDED = {"annotated_doc", "msgspec", "shellingham", "typer", "typing_extensions"}
"""Packages of others without which there is no help; NumPy, aiohttp, PyYAML and the like are for verbs."""


def test_help_is_there_at_once() -> None:
    """Nothing is timed: what is imported for it is looked at, and calls are counted."""
    ran = subprocess.run(
        [sys.executable, "-c", HELPING],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    count, imported = ast.literal_eval(ran.stdout.splitlines()[-1])
    assert {name.partition(".")[0] for name in imported} <= NEEDED | {"pumice", "tests"}
    rooms = {".".join(name.split(".")[:2]) for name in imported if name.startswith("pumice.")}
    assert rooms == {"pumice.api", "pumice.cli"}
    assert count < 200_000  # 127,000 were counted


WEBHOOK = """
import sys
from pathlib import Path
from pumice.cli import main
found = []
def run(*arguments):
    code = main(arguments)
    ours = "pydantic" in sys.modules and "typer._adapters" not in sys.modules  # typer 0.29 imports it for each option
    found.append((code, ours, "cryptography" in sys.modules))
run("lint", "examples/pytorch.yaml", "-o", "json")
run("webhook", "--check-config")
run("webhook", "--check-config", "--scheduler-name=volcano", "--set=rule.JOB-ZERO=off", "--set-plugins=wait-image=x")
from pumice.webhook.server.worker import GroupsFile
from pumice.webhook.server.metrics import ServerMetrics
groups = []
conf, certificate, key = sys.argv[1:]
GroupsFile(Path(conf), groups.append, ServerMetrics())
run("webhook", "--check-config", "--tls-cert-file", certificate, "--tls-private-key-file", key)
import pumice.certs.keeper
run("webhook", "--check-config", "--set=strict-upstream=true")
print((found, len(groups[0])))
"""


def test_the_webhook_never_imports_pydantic_and_cryptography_only_for_its_own_certificates(
    tmp_path: Path,
) -> None:
    """Each takes 8 MiB or more, and the webhook may have 72 MiB."""
    conf, certificate, key = (tmp_path / name for name in ("groups.conf", "tls.crt", "tls.key"))
    conf.write_text("resourceGroups: [{resourceGroup: gpu}, {resourceGroup: cpu}]")
    authority = Authority.create(generate_key(), 0, 2**31)
    leaf = authority.issue(generate_key(), ["localhost"], [], 0, 2**31)
    certificate.write_bytes(leaf.certificate_pem)
    key.write_bytes(leaf.key_pem)
    ran = subprocess.run(
        [sys.executable, "-c", WEBHOOK, conf, certificate, key],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    found, groups = ast.literal_eval(ran.stdout.splitlines()[-1])
    assert found == [
        (0, False, False),
        (0, False, False),
        (0, False, False),
        (0, False, False),
        (0, False, True),
    ]
    assert groups == 2


def test_the_installed_command_is_the_same() -> None:
    script = Path(sys.executable).with_name("pumice")
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == run("--version").stdout


@pytest.fixture
def ignored() -> Iterator[None]:
    """Tests that a service, or a shell with `&`, starts ignore Ctrl-C, and so would their commands."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def heed_ctrl_c() -> None:
    """What a command does first that a terminal starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.usefixtures("ignored")
def test_ctrl_c_wakes_a_command_that_waits() -> None:
    """The signal is delivered to another thread, so that no system call of the event loop is interrupted by it."""
    code = """
import asyncio, signal, threading, time
from pumice.cli.live import sessions

def interrupt():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(60)

async def work():
    threading.Thread(target=interrupt, daemon=True).start()
    await asyncio.sleep(50)

try:
    sessions.run(work())
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        preexec_fn=heed_ctrl_c,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@pytest.mark.usefixtures("ignored")
@pytest.mark.parametrize(
    ("shell", "said"), [("", "interrupted\n"), ("trap '' INT;", "computed\ndone\n")]
)
def test_ctrl_c_twice_ends_a_command_that_computes_unless_the_shell_ignores_it(
    shell: str, said: str
) -> None:
    code = """
import asyncio, os, signal, threading, time
from pumice.cli.live import sessions

def interrupt():
    for _ in range(2):
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

async def work():
    threading.Thread(target=interrupt).start()
    time.sleep(2)
    print("computed")
    await asyncio.sleep(0.1)
    print("done")

try:
    sessions.run(work())
except KeyboardInterrupt:
    print("interrupted")
"""
    command = f"{shell} exec {sys.executable} -c {shlex.quote(code)}"
    ran = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=heed_ctrl_c,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, said, "")
