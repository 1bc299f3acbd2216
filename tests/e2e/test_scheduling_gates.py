"""Pods that wait for their queue behind a scheduling gate: admission adds it, and the scheduler takes it away with the rights of the chart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.api.kinds import POD
from tests.e2e.scheduled import Cluster
from tests.kit.builders import job, task
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation, installed

Raw = dict[str, Any]

GATE = "scheduling.volcano.sh/queue-allocation-gate"
SETTING = "webhook.settings.scheduling-gates-queue-admission=true"


@pytest.fixture(scope="module")
def installation(
    controlplane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Pumice, installed from its chart with the feature."""
    folder = tmp_path_factory.mktemp("pumice")
    with installed(controlplane, folder, "--set", SETTING, forked=True) as here:
        yield here


def _submit(cluster: Cluster, name: str, **spec: Any) -> None:
    pods = task("w", 2, cpu="1", annotations={GATE: "true"}, spec=spec)
    cluster.plane.apply(job(name, [pods], namespace=cluster.name, minAvailable=2, queue="gated"))


def _all_say(name: str, reason: str) -> Callable[[dict[str, Raw]], bool]:
    """Whether a pod of the gang has that reason, and all of them no gate."""

    def holds(pods: dict[str, Raw]) -> bool:
        mine = [each for key, each in pods.items() if key.startswith(f"{name}-")]
        said = {
            condition.get("reason")
            for each in mine
            for condition in each["status"].get("conditions", ())
        }
        gates = any(each["spec"].get("schedulingGates") for each in mine)
        return len(mine) == 2 and reason in said and not gates

    return holds


def test_gates_go_when_nothing_but_a_node_is_missing(
    installation: Installation,
    namespace: str,
    add_node: Callable[..., str],
    make_queue: Callable[..., str],
) -> None:
    cluster = Cluster(installation, namespace)
    make_queue("gated")
    add_node("gated-1", "64")  # so that what other tests have left does not keep gangs out
    since = cluster.revision(POD)
    _submit(cluster, "fits")
    cluster.until(
        POD,
        lambda pods: any(each["spec"].get("schedulingGates") for each in pods.values()),
        "a pod with its gate",
        since=since,
    )
    cluster.await_running("fits", 2)

    _submit(cluster, "waits", nodeSelector={"pool": "new"})
    cluster.until(POD, _all_say("waits", "Unschedulable"), "pods that an autoscaler sees")
    add_node("gated-2", "2", labels={"pool": "new"})
    cluster.await_running("waits", 2)
