"""Which controllers `--controllers` selects."""

import pytest

from pumice.api.kinds import HYPER_NODE
from pumice.cluster.client import Client
from pumice.cluster.connection import ConfigurationError
from pumice.controller.worker import ControllerSettings, ControllerWorker
from pumice.controller.worker.controllers import MAKERS
from pumice.controller.worker.process import CONTROLLERS, SelectionError, selected
from pumice.plugins import builtin


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        (["*"], set(CONTROLLERS)),
        (["*", "-sharding-controller"], set(CONTROLLERS)),
        (["job-controller"], {"job-controller"}),
        (["+job-controller", "gc-controller"], {"job-controller", "gc-controller"}),
        (["*", "-gc-controller"], set(CONTROLLERS) - {"gc-controller"}),
        (["-job-controller", "*"], set(CONTROLLERS) - {"job-controller", "gc-controller"}),
    ],
    ids=["all", "Volcano's default", "one", "two", "all but one", "without Jobs no expiry"],
)
def test_what_is_selected(entries: list[str], wanted: set[str]) -> None:
    assert selected(entries) == wanted


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            ["job-controler"],
            "unknown controller 'job-controler' (did you mean \"job-controller\"?)",
        ),
        (["nothing"], "known are job-controller"),
        (["*", "-gc-controller", "gc-controller"], "named twice"),
        (["*", "sharding-controller"], "Pumice has no sharded scheduling"),
        (["gc-controller"], "part of job-controller"),
        (["-job-controller"], "no controller is selected"),
        ([], "no controller is selected"),
    ],
)
def test_a_selection_that_cannot_be_used_is_refused(entries: list[str], message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        selected(entries)
    assert message in str(caught.value)


def test_every_controller_that_can_be_selected_exists() -> None:
    assert set(CONTROLLERS) == {*MAKERS, "gc-controller"}


async def test_a_process_for_a_namespace_needs_a_controller_that_works_there() -> None:
    settings = ControllerSettings(namespace="team", controllers=frozenset({"hyperNode-controller"}))
    async with Client.connect(server="http://127.0.0.1:1") as client:
        with pytest.raises(ConfigurationError, match="whole cluster only"):
            ControllerWorker(client, builtin(), settings)


async def test_a_process_for_a_namespace_leaves_hyper_nodes_alone() -> None:
    async with Client.connect(server="http://127.0.0.1:1") as client:
        worker = ControllerWorker(client, builtin(), ControllerSettings(namespace="team"))
    assert HYPER_NODE not in [each.kind for each in worker.watches.required]
