"""What `pumice run` refuses before anything runs: one sentence, and exit code 2."""

from typing import Any

import pytest

from pumice.embedded.node.demands import problems
from pumice.embedded.node.namespaces import Mode
from tests.kit.builders import job, task
from tests.unit.cli.conftest import Pumice, texts


def simple(name: str, replicas: int = 1, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "any", "command": ["true"]}]
    return job(name, [task("worker", replicas, spec={"containers": containers, **spec})])


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}, "nothing in - can be run: expected a Job of batch.volcano.sh/v1alpha1 or a JobFlow of flow.volcano.sh/v1alpha1, found Job of batch/v1; `pumice dev --run` runs pods of other kinds"),
        (job("bad", []), "Job/default/bad is refused"),
        (simple("net", hostNetwork=True), "spec.tasks[0].template.spec.hostNetwork: pods have networks of their own"),
        (simple("none", 0), "the Jobs of the files have no pods: expected `replicas` of at least 1"),
        (simple("huge", 100_000), "the files ask for 100000 pods; a run has at most 1000 of them: lower `replicas`"),
        (simple("needs", volumes=[{"name": "c", "secret": {"secretName": "none"}}]), "spec.tasks[0].template.spec.volumes[0].secret: there is no Secret none; add it to the files"),
    ],
    ids=["nothing to run", "refused by admission", "not there on this machine", "no pods", "too many pods", "an object that no file has"],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_code_2(
    pumice: Pumice, manifest: dict[str, Any], expected: str
) -> None:
    ran = pumice("run", "-", stdin=texts(manifest))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count(expected) == 1


def test_a_user_beyond_the_subordinate_ones_is_refused_with_those_that_there_are() -> None:
    extents = ((0, 1000, 1), (1, 100_000, 65_536))
    mode = Mode(extents, extents, helper=True, is_full=True)
    spec = simple("j", securityContext={"runAsUser": 70_000, "fsGroup": 65_536})
    pod = spec["spec"]["tasks"][0]["template"]["spec"]
    (problem,) = problems(pod, "spec", mode, ())
    assert problem.path == "spec.securityContext.runAsUser"
    assert problem.message.startswith("there is no user 70000 here, the last is 65536; ")
