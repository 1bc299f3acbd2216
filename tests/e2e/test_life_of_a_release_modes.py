"""A release that gives up its webhook: whoever asked it before is held up by nothing, at no moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.users import (
    BATCH,
    CONFIGURATIONS,
    LABEL,
    Users,
    configurations,
    deleted,
    manifests,
    trusted,
    upgrade,
)
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import CHART, NAMESPACE, RELEASE, Installation

pytestmark = pytest.mark.controlplane

MODES = [("admission.mode=policies", False), ("webhook.enabled=false", True)]
"""How a webhook is given up, and whether by a rollback, too."""
BACK = ("admission.mode=webhook", "webhook.enabled=true")
ANSWERING = (
    f"/api/v1/namespaces/{NAMESPACE}/services",
    f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
)
OF_WEBHOOK = f"{LABEL},app.kubernetes.io/component=webhook"
OF_POLICIES = f"{LABEL},app.kubernetes.io/component=policies"
POLICIES = ",".join(
    f"{sort}admission{kind}"
    for kind in ("policybindings", "policies")
    for sort in ("validating", "mutating")
)


@contextmanager
def webhook_given_up(
    plane: ControlPlane, users: Users, installation: Installation
) -> Iterator[None]:
    """What the block does takes the webhook away: nobody notices, and nobody is asked any more."""
    listed = plane.request("GET", f"{BATCH}/{NAMESPACE}/jobs")[1]
    since: str = listed["metadata"]["resourceVersion"]
    with users.busy():
        yield
        installation.stop("webhook")
    users.noticed_nothing()
    found = configurations(plane)
    assert len(found) >= 8
    assert [each["metadata"]["name"] for each in found if each.get("webhooks")] == []
    emptied = [int(each["metadata"]["resourceVersion"]) for each in found]
    gone = [moment for path in ANSWERING for moment in deleted(plane, path, since)]
    assert len(gone) == 2
    assert max(emptied) < min(gone), "a webhook was still asked when its Service was gone"


def back(plane: ControlPlane, users: Users, installation: Installation) -> None:
    upgrade(plane, *BACK)
    installation.start("webhook")
    wait_until(lambda: trusted(plane), "every webhook to be trusted again", 60)
    wait_until(users.defaulted, "a Job to be admitted", 60)


@pytest.mark.parametrize(("setting", "again"), MODES)
def test_an_upgrade_or_rollback_to_no_webhook_refuses_no_request(
    controlplane: ControlPlane, users: Users, installation: Installation, setting: str, again: bool
) -> None:
    with webhook_given_up(controlplane, users, installation):
        upgrade(controlplane, setting)
    revision = controlplane.helm("history", RELEASE, "--max=1", namespace=NAMESPACE).stdout
    number = revision.splitlines()[-1].split()[0]
    back(controlplane, users, installation)
    if again:
        with webhook_given_up(controlplane, users, installation):
            controlplane.helm("rollback", RELEASE, number, namespace=NAMESPACE)
        back(controlplane, users, installation)


@pytest.mark.parametrize("manner", ["client-side", "server-side"])
def test_gitops_that_prunes_last_refuses_no_request(
    controlplane: ControlPlane, users: Users, installation: Installation, manner: str
) -> None:
    how = [] if manner == "client-side" else ["--server-side", "--force-conflicts"]

    def apply(manifest: str) -> None:
        controlplane.kubectl("apply", *how, "--field-manager=gitops", "-f", "-", stdin=manifest)

    def prune() -> None:
        going = ("delete", "service,deployment", "-l", OF_WEBHOOK)
        controlplane.kubectl(*going, namespace=NAMESPACE)

    wanted = controlplane.helm(
        *("template", RELEASE, str(CHART), "--set", "admission.mode=policies"),
        namespace=NAMESPACE,
    ).stdout
    # As if Helm had never had a hand in them.
    controlplane.kubectl("delete", ",".join(CONFIGURATIONS), "-l", OF_WEBHOOK)
    prune()
    apply(manifests(controlplane))
    wait_until(lambda: trusted(controlplane), "every webhook to be trusted", 60)
    wait_until(users.defaulted, "a Job to be admitted", 60)
    try:
        with webhook_given_up(controlplane, users, installation):
            apply(wanted)
            prune()
    finally:
        controlplane.kubectl("delete", POLICIES, "-l", OF_POLICIES)
    apply(manifests(controlplane))
    installation.start("webhook")
