"""Tests of the plugin: the contract of job plugins, and the variables of one pod."""

import msgspec
from pumice_jax import Jax

from pumice.api.jobs import Job
from pumice.plugins import Wiring, builtin
from pumice.testing import check_job_plugin

JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "mnist", "namespace": "default"},
    "spec": {
        "plugins": {"svc": [], "jax": ["--port=8476"]},
        "tasks": [{"name": "worker", "replicas": 4}],
    },
}


def test_contract() -> None:
    check_job_plugin(Jax)


def test_variables() -> None:
    job = msgspec.convert(JOB, Job)
    pod = {"metadata": {"name": "mnist-worker-3"}, "spec": {"containers": [{"name": "train"}]}}

    wired = Wiring(job, builtin().with_plugin(Jax(), "test")).pod(job.tasks[0], 3, pod)

    variables = wired["spec"]["containers"][0]["env"]
    assert {"name": "JAX_COORDINATOR_ADDRESS", "value": "mnist-worker-0.mnist:8476"} in variables
    assert {"name": "JAX_PROCESS_ID", "value": "3"} in variables
