"""The real TensorFlow in pods that plugin `tensorflow` has wired: workers find each other by `TF_CONFIG` and make a step together."""

from __future__ import annotations

from tests.frameworks.conftest import Run
from tests.frameworks.jobs import pod_spec
from tests.frameworks.programs import STEP_TENSORFLOW, Said, file_and, said
from tests.kit.builders import job, task


def test_workers_make_a_step_of_a_mirrored_strategy(run: Run) -> None:
    spec = pod_spec("tensorflow", file_and(STEP_TENSORFLOW, "exec python3 /tmp/program.py"))
    spec["restartPolicy"] = "Never"
    manifest = job("train", [task("worker", 2, spec=spec)], plugins={"tensorflow": []})
    assert said(run(manifest).text) == [
        Said(0, "train-worker-0", 2, 3),
        Said(1, "train-worker-1", 2, 3),
    ]
