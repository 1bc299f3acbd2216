"""Job plugin `jax`: every process of a JAX job finds its coordinator, its number and their count.

The pods of one task are the processes; the first of them coordinates. A training script hands the
variables on: `jax.distributed.initialize(address, int(count), int(number))`.
"""

from pumice.api.fields import FieldError, did_you_mean
from pumice.api.jobs import Job, Task
from pumice.plugins import (
    PORT,
    TEXT,
    Argument,
    ArgumentSpec,
    EnvVar,
    Findings,
    JobPlugin,
    PodEdits,
    Port,
    Values,
    address,
)


class Jax(JobPlugin):
    """Sets `JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES` and `JAX_PROCESS_ID`."""

    name = "jax"
    summary = "Gives every process of a JAX job its coordinator, its number and their count."
    requires = ("svc",)
    arguments = ArgumentSpec(
        Argument("task", TEXT, "worker", "task whose pods are the processes"),
        Argument("port", PORT, 1234, "port of the coordinator"),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse a Job without the task, whose processes would wait forever."""
        if job.task(values["task"]) is not None:
            return Findings()
        hint = did_you_mean(values["task"], [task.name for task in job.tasks])
        message = f'no task is named "{values["task"]}"{hint}; say which it is with --task=<name>'
        return Findings(errors=(FieldError("spec.plugins.jax", message, "JAX-TASK"),))

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:
        """Three variables for each process, and the coordinator's port; other tasks stay as they are."""
        if task.name != values["task"]:
            return PodEdits()
        port = values["port"]
        return PodEdits(
            env=(
                EnvVar("JAX_COORDINATOR_ADDRESS", f"{address(job, task, 0)}:{port}"),
                EnvVar("JAX_NUM_PROCESSES", str(task.size)),
                EnvVar("JAX_PROCESS_ID", str(index)),
            ),
            ports=(Port("jax", port),) if index == 0 else (),
        )
