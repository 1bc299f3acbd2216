"""Jobs for pods that really run: the shapes of the examples, with commands that the images have."""

from __future__ import annotations

from typing import Any

from tests.frameworks.programs import ALL_REDUCE_MPI, ALL_REDUCE_TORCH, file_and
from tests.kit.builders import job, task

Raw = dict[str, Any]

SSHD = "mkdir -p /var/run/sshd && exec /usr/sbin/sshd -D -p {port}"
"""What the example's workers do."""

USERS_SSHD = (
    "ssh-keygen -q -t ed25519 -N '' -f ~/host_key && "
    "exec /usr/sbin/sshd -D -p {port} -h ~/host_key -o PidFile=none"
)
"""The same for a user who is not root: it needs a host key of its own, and a port above 1023."""

IDLE = "exec sleep infinity"
ENDS_THE_JOB = [{"event": "TaskCompleted", "action": "CompleteJob"}]
"""Policy of a task: the others serve it."""


def pod_spec(image: str, script: str, **fields: Any) -> Raw:
    """A pod's spec with one container that runs a shell's script, and ends soon; keyword arguments are fields of the pod."""
    container = {"name": "main", "image": image, "command": ["sh", "-c", script]}
    return {"terminationGracePeriodSeconds": 1, "containers": [container], **fields}


def mpi_job(
    image: str,
    workers: int = 3,
    *,
    launch: str = IDLE,
    server: str = SSHD,
    port: int = 22,
    ssh: tuple[str, ...] = (),
    **fields: Any,
) -> Raw:
    """A launcher, with which the Job is over, and workers with two slots each that serve ssh.

    Args:
        image: The image of all of them.
        workers: How many.
        launch: What the launcher runs.
        server: What a worker runs.
        port: Where it listens.
        ssh: Arguments of plugin `ssh`.
        fields: Fields of the pods.
    """
    launcher = pod_spec(image, file_and(ALL_REDUCE_MPI, launch), **fields)
    worker = pod_spec(image, file_and(ALL_REDUCE_MPI, server.format(port=port)), **fields)
    worker["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    given = [f"--port={port}"] if port != 22 else []
    return job(
        "pi",
        [
            task("master", spec={**launcher, "restartPolicy": "Never"}, policies=ENDS_THE_JOB),
            task("worker", workers, spec=worker),
        ],
        plugins={"svc": [], "ssh": list(ssh), "mpi": ["--wait-workers-enabled", *given]},
    )


def torch_job(
    command: str,
    *arguments: str,
    program: str = ALL_REDUCE_TORCH,
    workers: int = 1,
    processes: int = 1,
    **env: str,
) -> Raw:
    """A master and workers that run one command, with a program beside; further keyword arguments are variables of the template."""
    spec = pod_spec("base", file_and(program, command), restartPolicy="Never")
    container = spec["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": str(processes)}}
    container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    tasks = [task("master", spec=spec), task("worker", workers, spec=spec)]
    return job("train", tasks, plugins={"pytorch": list(arguments)})
