"""Each Volcano Job in `examples/` that is meant to run is placed, with all its pods, on nodes that have room for it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pumice.api.kinds import JOB, of_object
from pumice.cli.files.manifests import read_objects
from tests.kit import tables
from tests.kit.builders import node
from tests.unit.cli.conftest import EXAMPLES, Pumice, Ran

DOES_NOT_FIT = "does-not-fit.yaml"
REFUSED = tables.table("examples")["refused"]

pytestmark = pytest.mark.usefixtures("example_plugin")


def jobs(file: Path) -> list[dict[str, Any]]:
    """The Volcano Jobs of a file."""
    return [each for each in read_objects([file]) if of_object(each) == JOB]


MEANT_TO_RUN = [
    name
    for file in sorted(EXAMPLES.rglob("*.yaml"))
    if (name := file.relative_to(EXAMPLES).as_posix()) not in (DOES_NOT_FIT, *REFUSED)
    and jobs(file)
]


def resources(found: Any) -> set[str]:
    """Names of the resources that containers ask for, anywhere in an object."""
    if isinstance(found, list):
        return set().union(*map(resources, found))
    if not isinstance(found, dict):
        return set()
    own = {name for field in ("requests", "limits") for name in found.get(field) or ()}
    return own.union(*map(resources, found.values()))


def simulate(pumice: Pumice, name: str, nodes: list[dict[str, Any]]) -> Ran:
    """Five cycles of an example on nodes."""
    arguments = ("simulate", "--state", "-", EXAMPLES / name, "--cycles", 5, "-o", "json")
    return pumice(*arguments, stdin=msgspec.json.encode(nodes))


def bound(ran: Ran) -> list[str]:
    """The pods that were bound, in all cycles."""
    return [pod for cycle in ran.json["cycles"] for pod in cycle["binds"]]


@pytest.mark.parametrize("name", MEANT_TO_RUN)
def test_a_job_that_is_meant_to_run_is_placed(pumice: Pumice, name: str) -> None:
    found = jobs(EXAMPLES / name)
    devices: dict[str, Any] = dict.fromkeys(sorted(resources(found) - {"cpu", "memory"}), "64")
    ran = simulate(pumice, name, [node(f"n{n}", "64", "512Gi", **devices) for n in range(4)])

    replicas = [task["replicas"] for job in found for task in job["spec"]["tasks"]]
    assert (ran.code, ran.err, ran.json["pending"]) == (0, "", {})
    assert len(set(bound(ran))) == len(bound(ran)) == sum(replicas)


def test_the_job_that_is_not_meant_to_fit_is_not_placed(pumice: Pumice) -> None:
    seed = [node("node1", "2"), node("node2", "1"), node("node3", "4")]
    ran = simulate(pumice, DOES_NOT_FIT, seed)

    assert (ran.code, bound(ran)) == (1, [])
    assert "3 Insufficient cpu" in next(iter(ran.json["pending"].values()))["message"]


def test_examples_were_found() -> None:
    assert {"mpi.yaml", "job-plugin/job.yaml", "mistakes/running.yaml"} <= {*MEANT_TO_RUN}
