"""Every command that the documentation shows about a release in a cluster does what the documentation shows."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.docs.pages import pages_on
from tests.docs.running import run_page
from tests.kit.waiting import wait_until
from tests.support.cert_manager import CertManager
from tests.support.controlplane.cluster import ONE_SHOT, ControlPlane
from tests.support.installation import remove_cluster_wide
from tests.support.kubelet import Kubelet, kubelet
from tests.support.prometheus_operator import prometheus_kinds


@pytest.mark.parametrize("page", pages_on("control plane"), ids=lambda page: page.name)
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
            **ONE_SHOT,
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

    So helm tells the release an address, and openssl makes certificates that are for it, too. What is
    installed is validated before; with each upgrade that takes longer than the upgrade.
    """
    real, openssl = plane.binaries["helm"], shutil.which("openssl")
    scripts = {
        "helm": f"""#!/bin/sh
case "$1" in
  install) exec {real} "$@" --set webhook.url={stands.url} ;;
  upgrade) exec {real} "$@" --set webhook.url={stands.url} --disable-openapi-validation ;;
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
    """A page may end in the middle; its webhooks and policies must not hold up the tests that follow."""
    plane.helm("uninstall", "pumice", "--ignore-not-found", namespace="pumice-system")
    remove_cluster_wide(plane)
    plane.remove_namespace("pumice-system")
    path = "/api/v1/namespaces/pumice-system"
    wait_until(lambda: plane.request("GET", path)[0] == 404, "pumice-system to be gone", 60)
