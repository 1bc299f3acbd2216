"""What kubectl asks of a pod's containers: a log, or a command. Checked against the pod as kube-apiserver does, and in its words.

What only the node knows, such as whether the container runs, it checks itself (`Containers`).

Source: Kubernetes API reference, Pod v1, "read log" and "exec"; `validateContainer` of kube-apiserver.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from pumice.api.meta import parse_time
from pumice.embedded import statuses
from pumice.embedded.storage import Obj

STDIN, STDOUT, STDERR = 0, 1, 2
"""Streams by their numbers in messages."""

_LISTS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class ContainerLogRequest:
    """A request for the log of a container.

    Attributes:
        namespace: The pod's namespace.
        pod: Its name.
        container: The container's name.
        previous: The log of the container before it was restarted.
        follow: Whether to wait for further lines.
        timestamps: Whether each line begins with its moment.
        tail: The last lines only.
        since_seconds: Lines of the last seconds only.
        since_time: Lines from that moment on, in UNIX seconds.
        limit: Bytes at most.
    """

    namespace: str
    pod: str
    container: str
    previous: bool = False
    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    since_seconds: int | None = None
    since_time: float | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerCommandRequest:
    """A request to run a command in a container.

    Attributes:
        namespace: The pod's namespace.
        pod: Its name.
        container: The container's name.
        command: Program and arguments.
        streams: The streams that the client wants.
        tty: Whether it wants a terminal.
    """

    namespace: str
    pod: str
    container: str
    command: tuple[str, ...]
    streams: frozenset[int]
    tty: bool = False


def log_request(pod: Obj, query: Mapping[str, str]) -> ContainerLogRequest | None:
    """Check a request for a log; None if the pod is on no node yet, and so has none.

    Raises:
        ApiStatusError: 400: the query is invalid, or names no container of the pod.
    """
    container = _container(pod, query.get("container", ""))
    since_time = parse_time(query.get("sinceTime"))
    if query.get("sinceTime") and since_time is None:
        raise statuses.bad_request(f"invalid sinceTime: {query['sinceTime'][:100]!r}")
    seconds = _number(query, "sinceSeconds", 1)
    if seconds is not None and since_time is not None:
        raise statuses.bad_request("at most one of sinceTime and sinceSeconds may be specified")
    asked = ContainerLogRequest(
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        container,
        previous=_flag(query, "previous"),
        follow=_flag(query, "follow"),
        timestamps=_flag(query, "timestamps"),
        tail=_number(query, "tailLines", 0),
        since_seconds=seconds,
        since_time=since_time,
        limit=_number(query, "limitBytes", 1),
    )
    if not pod["spec"].get("nodeName"):
        return None
    return asked


def command_request(
    pod: Obj, query: Mapping[str, str], command: tuple[str, ...]
) -> ContainerCommandRequest:
    """Check a request to run a command.

    Raises:
        ApiStatusError: 400: the query is invalid, or the pod is on no node or completed.
    """
    metadata = pod["metadata"]
    container = _container(pod, query.get("container", ""))
    tty = _flag(query, "tty")
    flags = {STDIN: "stdin", STDOUT: "stdout", STDERR: "stderr"}
    streams = frozenset(number for number, name in flags.items() if _flag(query, name))
    if not command or not command[0]:
        raise statuses.bad_request("you must specify at least 1 command for the container")
    if not streams:
        raise statuses.bad_request("you must specify at least 1 of stdin, stdout, stderr")
    if not pod["spec"].get("nodeName"):
        raise statuses.bad_request(f"pod {metadata['name']} does not have a host assigned")
    phase = (pod.get("status") or {}).get("phase")
    if phase in {"Succeeded", "Failed"}:
        message = f"cannot exec into a container in a completed pod; current phase is {phase}"
        raise statuses.bad_request(message)
    return ContainerCommandRequest(
        metadata["namespace"], metadata["name"], container, command, streams, tty=tty
    )


def _container(pod: Obj, name: str) -> str:
    """The container that is meant: the one that is named, or the only one."""
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    names = [each["name"] for field in _LISTS for each in spec.get(field) or ()]
    if not name and len(spec["containers"]) == 1:
        only: str = spec["containers"][0]["name"]
        return only
    if not name:
        message = f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]"
        raise statuses.bad_request(message)
    if name not in names:
        raise statuses.bad_request(f"container {name[:253]} is not valid for pod {pod_name}")
    return name


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in {"true", "1"}


def _number(query: Mapping[str, str], name: str, least: int) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        number = msgspec.convert(text, int, strict=False)
    except msgspec.ValidationError:
        number = least - 1
    if number < least:
        message = f"invalid {name}: {text[:100]!r}, expected a whole number of at least {least}"
        raise statuses.bad_request(message)
    return number
