"""The wait step: an init container that delays a pod until other pods answer.

It tries every address until each accepts a TCP connection, logs what it waits for, and fails after a timeout. Its image
needs a POSIX shell and one of `nc`, `bash` and `python3`; without them it fails immediately.

Many addresses are read from a file: the script is one argument of a program, and Linux takes none of 128 KiB.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.jobs import Job, Task
from pumice.api.raw import object_in, objects_in
from pumice.plugins.arguments import BOOLEAN, Argument, Values, between
from pumice.plugins.settings import PluginSettings

INTERVAL_SECONDS = 2
"""Seconds between two tries."""

_TRY_SECONDS = 2
_KINDS = ("requests", "limits")

# The limit of 32-bit shells; longer than any machine runs.
_SECONDS = between("seconds", "a number of seconds", 1, 2**31 - 1)

# Volcano's script falls back on the shell's own /dev/tcp, which only bash has, whatever `sh` is.
_SCRIPT = """\
port={port}; deadline=$(($(date +%s) + {timeout}))
if command -v nc >/dev/null; then
  answers() {{ nc -z -w {try_seconds} "$1" "$2"; }}
elif command -v bash >/dev/null; then
  answers() {{ timeout {try_seconds} bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2"; }}
elif command -v python3 >/dev/null; then
  answers() {{ python3 -c 'import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), {try_seconds})' "$1" "$2"; }}
else
  echo "this image has no nc, no bash and no python3 to wait with" >&2
  exit 1
fi
{each}; do
  until answers "$host" "$port" </dev/null >/dev/null 2>&1; do
    if [ "$(date +%s)" -ge "$deadline" ]; then
      echo "gave up after {timeout} s: $host does not answer on port $port" >&2
      exit 1
    fi
    echo "waiting for $host to answer on port $port"
    sleep {interval}
  done
  echo "$host answers on port $port"
done{source}
"""


def wait_arguments(
    peer: str, purpose: str, held: str, *, ours: bool = True
) -> tuple[Argument, Argument]:
    """The arguments with which a Job requests the wait step.

    Args:
        peer: Role that it waits for; the arguments contain its name.
        purpose: What the step does, for the documentation.
        held: Pods that fail after the timeout, for the documentation.
        ours: Whether they exist only in Pumice.
    """
    help_of_timeout = f"seconds after which {held} gives up waiting"
    return (
        Argument(f"wait-{peer}-enabled", BOOLEAN, False, purpose, ours=ours),
        Argument(f"wait-{peer}-timeout", _SECONDS, 300, help_of_timeout, ours=ours),
    )


def wait_step(
    peer: str,
    hosts: Sequence[str] | str,
    port: int,
    values: Values,
    task: Task | None,
    *,
    image: str = "",
) -> tuple[dict[str, Any], ...]:
    """The wait step, if a Job's `wait_arguments` request it and there is a pod to wait for.

    Args:
        peer: Role that it waits for.
        hosts: Their addresses, or the file in which they are the first word of each line.
        port: Port on which they answer.
        values: The plugin's arguments; Volcano's step has neither resources nor a security context.
        task: Task whose pods wait.
        image: Image to use instead of the one in the settings.
    """
    if not values[f"wait-{peer}-enabled"] or not hosts or task is None:
        return ()
    settings = values.settings
    if values.strict_upstream:
        settings = PluginSettings(settings.wait_image, {}, {})
    elif _runs_windows(task):
        return ()
    else:
        settings = replace(settings, wait_resources=_beside(task, settings.wait_resources))
    timeout = values[f"wait-{peer}-timeout"]
    name = f"wait-for-{peer}"
    return (wait_container(name, hosts, port, settings=settings, timeout=timeout, image=image),)


def wait_warnings(job: Job, plugin: str, peer: str, values: Values, held: str) -> list[FieldError]:
    """Warn about pods of task `held` that should wait for those of role `peer` and cannot."""
    if not values[f"wait-{peer}-enabled"] or (task := job.task(held)) is None:
        return []
    text = f"--wait-{peer}-enabled has no effect on task {held}: "
    if _runs_windows(task) and not values.strict_upstream:
        text += "the wait step is a script of a shell that Windows does not have"
    elif f"wait-for-{peer}" in _names_of_containers(task):
        text += f"it has a container named wait-for-{peer}, as the wait step would be; rename the container"
    else:
        return []
    return [FieldError(f"spec.plugins.{plugin}", text, "JOB-PLUGIN-ARGUMENT")]


def _runs_windows(task: Task) -> bool:
    """True if a task's pods run Windows, for which Kubernetes refuses a Linux security context."""
    return object_in(task.pod_spec(), "os").get("name") == "windows"


def _beside(task: Task, resources: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resources of the step, without those that the pod requests as a whole."""
    if not (whole := object_in(task.pod_spec(), "resources")):
        return resources
    asked = {name for kind in _KINDS for name in object_in(whole, kind)}
    rest = {
        kind: {name: each for name, each in object_in(resources, kind).items() if name not in asked}
        for kind in _KINDS
    }
    others = {key: each for key, each in resources.items() if key not in _KINDS}
    return others | {kind: amounts for kind, amounts in rest.items() if amounts}


def _names_of_containers(task: Task) -> list[Any]:
    return [each.get("name") for each in objects_in(task.pod_spec(), "containers")]


def wait_container(
    name: str,
    hosts: Sequence[str] | str,
    port: int,
    *,
    settings: PluginSettings,
    timeout: int,
    image: str = "",
) -> dict[str, Any]:
    """The init container.

    Args:
        name: Its name.
        hosts: Addresses that must answer, or the file in which they are the first word of each line.
        port: TCP port on which they answer.
        settings: Image, resources and security context.
        timeout: Seconds after which it fails, and with it the pod.
        image: Image to use instead of the one in the settings.
    """
    each, source = f"for host in {' '.join(hosts)}", ""
    if isinstance(hosts, str):
        each, source = "while read -r host _", f" <{hosts}"
    script = _SCRIPT.format(
        port=port,
        each=each,
        source=source,
        timeout=timeout,
        interval=INTERVAL_SECONDS,
        try_seconds=_TRY_SECONDS,
    )
    container: dict[str, Any] = {
        "name": name,
        "image": image or settings.wait_image,
        "command": ["sh", "-c", script],
    }
    if settings.wait_resources:
        container["resources"] = deepcopy(dict(settings.wait_resources))
    if settings.wait_security_context:
        container["securityContext"] = deepcopy(dict(settings.wait_security_context))
    return container
