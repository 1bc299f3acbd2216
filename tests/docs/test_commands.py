"""Every command that the documentation shows does what the documentation shows."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.docs.pages import (
    ROOT,
    Block,
    Command,
    blocks,
    commands,
    inline_commands,
    mismatch,
    pages,
)
from tests.kit.waiting import wait_until
from tests.support.cert_manager import CertManager
from tests.support.controlplane.cluster import ControlPlane
from tests.support.kubelet import Kubelet, kubelet
from tests.support.prometheus_operator import prometheus_kinds

LIMIT = 60  # seconds for a command

NOT_RUN = {
    "kubectl logs deployment/pumice-webhook": "needs a kubelet",
    "make manifests": "tests/chart/test_plain_manifest.py runs what it runs",
    "helm upgrade": "stands for any",
    "make kill": "tests/e2e/test_killed.py runs five of its rounds",
    "pumice certs": "names the component",
    "pumice controller": "names the component",
    "pumice scheduler": "names the component",
    "kubectl apply": "stands for any",
}
"""Commands within sentences that no block of their page has, each with why."""

# make sets the checkout up before it does what it is asked for; a test must leave it as it is.
RECIPES = {"make demo": "python examples/demo.py"}


def nothing() -> None:
    """What happens between two commands where nothing has to."""


def run_page(
    page: Path,
    folder: Path,
    cluster: dict[str, str] | None,
    between: Callable[[], None] = nothing,
) -> None:
    """Write the page's files and run its commands, all in one folder.

    Args:
        page: The page.
        folder: Where; it gets what a checkout has beside the documentation.
        cluster: Environment of the blocks that talk to an API server; None leaves them out.
        between: Called after each command.
    """
    for name in ("charts", "deploy", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    environment = {**os.environ, **(cluster or {}), "PATH": search_path(cluster or {})}
    with ExitStack() as stack:
        for block in blocks(page):
            if block.file:
                (folder / block.file).write_text(f"{block.text}\n")
            elif block.is_run and (cluster is not None or not block.needs_cluster):
                run_block(block, folder, environment, stack, between)


def run_block(
    block: Block,
    folder: Path,
    environment: dict[str, str],
    stack: ExitStack,
    between: Callable[[], None],
) -> None:
    shown = list(commands(block))
    for command in shown:
        if command.stays:
            stack.enter_context(in_background(command, folder, environment))
            continue
        wanted = block.exit_code if command is shown[-1] else 0
        difference = run_command(command, folder, environment, wanted)
        # What waits for something waits for a machine that has nothing else to do.
        late = time.monotonic() + LIMIT
        while difference and command.text.startswith("sleep ") and time.monotonic() < late:
            difference = run_command(command, folder, environment, wanted)
        where = f"{block.page.relative_to(ROOT)}:{block.line}: $ {command.text}"
        assert not difference, f"{where}\n{difference}"
        between()


def run_command(command: Command, folder: Path, environment: dict[str, str], wanted: int) -> str:
    """Run a command; how it differs from what is shown, empty where it does not."""
    answer = subprocess.run(
        ["bash", "-c", RECIPES.get(command.text, command.text)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if answer.returncode != wanted:
        return f"ended with exit code {answer.returncode}, expected {wanted}\n{answer.stdout}"
    return mismatch(command.output, answer.stdout) if command.output else ""


@contextmanager
def in_background(command: Command, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A command that runs on; ended as Ctrl-C would end it."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command.text.removesuffix(' &')}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), f"$ {command.text}\nended without a word"
            yield
        finally:
            process.send_signal(signal.SIGINT)


def search_path(environment: dict[str, str]) -> str:
    own = Path(sys.executable).parent
    return os.pathsep.join(filter(None, [str(own), environment.get("PATH"), os.environ["PATH"]]))


def runnable(cluster: bool) -> list[Path]:
    """The pages that have commands to run, with or without an API server."""
    return [
        page
        for page in pages()
        if any(each.is_run and each.needs_cluster is cluster for each in blocks(page))
    ]


@pytest.mark.parametrize("page", runnable(False), ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, None)


@pytest.mark.parametrize("page", runnable(True), ids=lambda page: page.name)
def test_the_commands_of_a_page_do_it_on_a_cluster(
    page: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    controlplane: ControlPlane,
) -> None:
    aside = tmp_path_factory.mktemp("aside")
    manager = CertManager(controlplane, "pumice-system")
    monitored = "servicemonitors" in page.read_text()
    kinds = prometheus_kinds(controlplane) if monitored else nullcontext()
    with kinds, kubelet(controlplane, aside) as stands:
        tools = {str(path.parent) for path in controlplane.binaries.values()}
        environment = {
            "PATH": os.pathsep.join([tools_of_tests(controlplane, aside, stands), *sorted(tools)]),
            "KUBECONFIG": str(controlplane.kubeconfig),
            "HOME": str(tmp_path),
        }

        def between() -> None:
            manager.sync()
            stands.settle()

        try:
            run_page(page, tmp_path, environment, between)
        except AssertionError as error:
            if stands.problem:
                error.add_note(stands.problem)
            raise
        finally:
            tidy(controlplane)
            manager.remove()


def tools_of_tests(plane: ControlPlane, folder: Path, stands: Kubelet) -> str:
    """A folder with tools that know where the webhook is: the API server of tests reaches no pod.

    So helm tells the release an address, and openssl makes certificates that are for it, too.
    """
    real, openssl = plane.binaries["helm"], shutil.which("openssl")
    scripts = {
        "helm": f"""#!/bin/sh
case "$1" in
  install|upgrade) exec {real} "$@" --set webhook.url={stands.url} ;;
  *) exec {real} "$@" ;;
esac
""",
        "openssl": f"""#!/bin/bash
exec {openssl} "${{@/%.svc/.svc,IP:127.0.0.1}}"
""",
    }
    (folder / "bin").mkdir()
    for name, script in scripts.items():
        (folder / "bin" / name).write_text(script)
        (folder / "bin" / name).chmod(0o755)
    return str(folder / "bin")


def tidy(plane: ControlPlane) -> None:
    """A page may end in the middle; its webhooks must not hold up the tests that follow."""
    plane.helm("uninstall", "pumice", "--ignore-not-found", namespace="pumice-system")
    left = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    left += ",clusterroles,clusterrolebindings"
    plane.kubectl("delete", left, "-l", "app.kubernetes.io/instance=pumice")
    plane.remove_namespace("pumice-system")
    path = "/api/v1/namespaces/pumice-system"
    wait_until(lambda: plane.request("GET", path)[0] == 404, "pumice-system to be gone", 60)


def test_every_command_about_a_cluster_is_run_or_it_is_said_why_not() -> None:
    for name in ("operations.md", "policies.md"):
        page = ROOT / "docs" / name
        found = [each for each in blocks(page) if each.language in {"console", "sh", "bash"}]
        assert [each.line for each in found if not each.is_run] == []
        run = {" ".join(one.text.split()) for block in found for one in commands(block)}
        left = [each for each in inline_commands(page) if each not in run]
        assert [each for each in left if each not in NOT_RUN] == [], name


def test_the_first_page_has_commands_that_run() -> None:
    assert ROOT / "README.md" in runnable(False)


def test_the_recipes_of_make_are_what_is_run_for_them() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command, recipe in RECIPES.items():
        target = command.removeprefix("make ")
        _, _, rest = makefile.partition(f"\n{target}:")
        assert recipe.replace("python", "@$(PY)") in rest.splitlines()[1]
