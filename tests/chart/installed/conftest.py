"""The chart on a real API server, with nobody behind its webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chart.installed.release import GOING, HOME, JOBS, USERS, Dead, job
from tests.chart.manifests import CHART, RELEASE
from tests.support.controlplane.cluster import ControlPlane


@pytest.fixture(scope="module")
def dead() -> Iterator[Dead]:
    webhook = Dead()
    yield webhook
    webhook.close()


@pytest.fixture(scope="module", autouse=True)
def installed(controlplane: ControlPlane, dead: Dead) -> Iterator[None]:
    """A release whose webhooks see these namespaces only, so that no other test is held up by it."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    controlplane.add_namespace(HOME, restricted)
    controlplane.add_namespace(USERS)
    controlplane.add_namespace(GOING)
    only = "webhook.namespaceSelectorExpressions[0]"
    sets = [
        f"webhook.url={dead.url}",
        f"{only}.key=kubernetes.io/metadata.name",
        f"{only}.operator=In",
        f"{only}.values={{{USERS},{GOING},{HOME},kube-system}}",
        "networkPolicy.enabled=true",
    ]
    controlplane.establish()
    for namespace, name in ((USERS, "older"), (USERS, "held"), (GOING, "older")):
        path = JOBS.replace(USERS, namespace)
        status, answer = controlplane.request("POST", path, job(name))
        assert status == 201, answer
    arguments = [word for each in sets for word in ("--set", each)]
    try:
        controlplane.helm("install", RELEASE, str(CHART), *arguments, namespace=HOME)
        yield
    finally:
        controlplane.helm("uninstall", RELEASE, "--ignore-not-found", namespace=HOME)
        for name in (HOME, USERS, GOING):
            controlplane.remove_namespace(name)
