"""Commands of group `bus.volcano.sh`: creating them as `vcctl` does, and waiting for their effect.

The controller carries a Command out once and deletes it. A Command that is not deleted means that no controller runs.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api.durations import parse_seconds
from pumice.api.fields import plain
from pumice.api.keys import CLOSED_BY_PARENT
from pumice.api.kinds import COMMAND, JOB, QUEUE, Kind
from pumice.api.messages import counted
from pumice.api.meta import Raw
from pumice.cli import exits
from pumice.cli.live.sessions import error_text, get, name_of, run
from pumice.cli.options import ClusterOptions, OrderOptions
from pumice.cli.output import Form, note, paint, write_result
from pumice.cluster.errors import ApiError, Forbidden, Gone, NotFound, Unavailable
from pumice.controller.jobs.phases import FINISHED

if TYPE_CHECKING:
    from pumice.cluster.client import Client

_ABORTED = frozenset({"Aborted"})
_SUSPENDED = frozenset({"Aborting", "Aborted"})
_CLOSED = frozenset({"Closing", "Closed"})
_OPEN = frozenset({"Open"})
_LEAVING = frozenset({"Completing", "Terminating"})
_LIVE = frozenset({"", "Pending", "Running", "Restarting"})

_SETTLING = 2.0
"""Seconds to wait for the state after the Command is gone; a controller may delete it before it acts."""
_WATCH_SECONDS = 60.0
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on a Job or a queue.

    Attributes:
        kind: Kind of the object.
        action: Action of the Command.
        done: The word for the completed operation.
        target: State after the operation.
        accepted: States in which it is in progress or done.
        reached: States in which it is done: the target, and those after it.
        refused: States in which it cannot be done.
    """

    kind: Kind
    action: str
    done: str
    target: str
    accepted: frozenset[str]
    reached: frozenset[str]
    refused: frozenset[str] = frozenset()


OPERATIONS: Mapping[str, Operation] = {
    "suspend": Operation(
        JOB, "AbortJob", "suspended", "Aborted", _SUSPENDED, _ABORTED, FINISHED | _LEAVING
    ),
    "resume": Operation(
        JOB,
        "ResumeJob",
        "resumed",
        "Running",
        _LIVE | _LEAVING | FINISHED,
        frozenset({"Running", "Completing", "Completed"}),
        FINISHED | _LEAVING,
    ),
    "close": Operation(QUEUE, "CloseQueue", "closed", "Closed", _CLOSED, frozenset({"Closed"})),
    "open": Operation(QUEUE, "OpenQueue", "opened", "Open", _OPEN, _OPEN),
}
"""Operations by the name of the verb."""


class CommandRequests:
    """One operation on some objects, with the options of a verb."""

    def __init__(self, operation: str, options: OrderOptions) -> None:
        """Read the options.

        Raises:
            UserError: The timeout is no duration.
        """
        seconds = parse_seconds(options.timeout)
        if seconds is None:
            raise exits.UserError(
                f"--timeout {options.timeout!r}: expected a duration such as 30s or 2m, or 0"
            )
        self._operation = OPERATIONS[operation]
        self._wait, self._seconds, self._form = options.wait, seconds, options.output

    def run(self, cluster: ClusterOptions, given: Sequence[str], namespace: str | None) -> None:
        """Carry the operation out for each object, `NAME` or `KIND/NAME`, print the results, and exit with code 1 if one is not done.

        Raises:
            UserError: An object does not exist, and nothing was done; or the API server cannot be reached.
        """
        names = [name_of(each, self._operation.kind) for each in given]
        results = run(self._all(cluster, names, namespace), only_reads=False)
        titles = [
            f"{self._operation.kind.singular}/{each['object'].rpartition('/')[2]}"
            for each in results
        ]
        done = [(title, each) for title, each in zip(titles, results, strict=True) if each["done"]]
        if done or self._form is not Form.TEXT:
            write_result(
                self._form,
                {"results": results},
                [title for title, _ in done],
                lambda: "\n".join(self._line(*each) for each in done),
            )
        for title, each in zip(titles, results, strict=True):
            if not each["done"]:
                note(f"{paint(title, 'red', sys.stderr)} {plain(each['message'])}")
        exits.finish(exits.FINE if len(done) == len(results) else exits.REFUSED)

    def _line(self, title: str, result: Mapping[str, Any]) -> str:
        state = f" ({result['state']})" if result["state"] else ""
        already = "" if result["command"] else "already "
        return f"{title} {already}{self._operation.done}{state}"

    async def _all(
        self, cluster: ClusterOptions, names: Sequence[str], namespace: str | None
    ) -> list[dict[str, Any]]:
        async with cluster.connect() as client:
            where = namespace or client.connection.namespace
            # All are read before the first is changed, so that a wrong name changes nothing.
            found = [await get(client, self._operation.kind, name, where) for name in names]
            operations = [self._one(client, raw, where) for raw in found]
            return list(await asyncio.gather(*operations))

    async def _one(self, client: "Client", raw: Raw, namespace: str) -> dict[str, Any]:
        try:
            return await carry_out(
                client,
                self._operation,
                raw,
                namespace,
                wait=self._wait,
                seconds=self._seconds,
            )
        except ApiError as error:
            if error.status == 0:
                raise
            refused = {"object": _title(raw), "action": self._operation.action, "command": ""}
            return refused | {"state": _state(raw), "done": False, "message": error_text(error)}


async def carry_out(
    client: "Client", operation: Operation, raw: Raw, namespace: str, *, wait: bool, seconds: float
) -> dict[str, Any]:
    """Create a Command for an object and wait for the controller.

    Args:
        client: The connection.
        operation: What to do.
        raw: The Job or queue.
        namespace: Namespace of the Command.
        wait: Whether to wait until the object is in the state that the operation leads to.
        seconds: How long to wait in all; 0 does not wait.

    Returns:
        `object`, `action`, `command` (its name; empty if none was needed), `state`, `done`, and `message` if it is not done.

    Raises:
        ApiError: The API server refuses the Command.
    """
    state = _state(raw)
    result = {"object": _title(raw), "action": operation.action, "command": ""}
    if problem := _refusal(operation, raw, state):
        return result | {"state": state, "done": False, "message": problem}
    begun = time.monotonic()
    if not _is_asked_already(operation, raw, state):
        command = await _create(client, operation, raw, namespace)
        result["command"] = command["metadata"]["name"]
        if not seconds:
            return result | {"state": state, "done": True, "message": ""}
        if not await _is_taken(client, command, seconds):
            return result | {"state": state, "done": False, "message": _not_taken(command, seconds)}
    wanted = operation.reached if wait else operation.accepted
    ended = wanted | (FINISHED if operation.kind is JOB else frozenset())
    left = max(begun + seconds - time.monotonic(), 0.1) if wait else _SETTLING
    last = raw
    if result["command"] or state not in wanted:
        last = await _until(client, operation.kind, raw, lambda each: _state(each) in ended, left)
    state = _state(last)
    done = state in wanted
    message = "" if done else _not_reached(operation, last, seconds if wait else left)
    return result | {"state": state, "done": done, "message": message}


def _title(raw: Raw) -> str:
    meta = raw["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _state(raw: Raw) -> str:
    """The phase of a Job, or the state of a queue, which is open by default."""
    state = (raw.get("status") or {}).get("state") or ""
    if isinstance(state, Mapping):
        return str(state.get("phase") or "")
    return str(state) or ("Open" if raw.get("kind") == QUEUE.kind else "")


def _refusal(operation: Operation, raw: Raw, state: str) -> str:
    """Why the controller would refuse the Command."""
    if state in operation.refused:
        return f"is {state}: a Job that has ended, or is about to, cannot be {operation.done}"
    if operation.action == "CloseQueue" and raw["metadata"]["name"] == "root":
        return "holds all other queues; close those that are to be closed"
    return ""


def _is_asked_already(operation: Operation, raw: Raw, state: str) -> bool:
    if operation.action == "ResumeJob":
        return state in _LIVE
    annotations = raw["metadata"].get("annotations") or {}
    # A queue that is closed with the one above it opens with that one, unless it is closed itself.
    return state in operation.accepted and annotations.get(CLOSED_BY_PARENT) != "true"


def command_for(raw: Raw, action: str, namespace: str) -> Raw:
    """A Command for a Job or a queue."""
    meta = raw["metadata"]
    owner = {"apiVersion": raw["apiVersion"], "kind": raw["kind"], "name": meta["name"]}
    owner |= {"uid": meta["uid"], "controller": True}
    return COMMAND.type_meta | {
        "metadata": {
            "generateName": f"{meta['name']}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [owner],
        },
        "action": action,
        "target": owner,
    }


async def _create(client: "Client", operation: Operation, raw: Raw, namespace: str) -> Raw:
    command = command_for(raw, operation.action, namespace)
    try:
        return await client.create(COMMAND, command, namespace)
    except NotFound as error:
        message = f"the cluster has no kind {COMMAND.kind} ({COMMAND.api_version}): install its CRD"
        raise ApiError(404, error.reason, message) from error


async def _is_taken(client: "Client", command: Raw, seconds: float) -> bool:
    """True if a controller has deleted a Command, or if the user may not read Commands."""
    try:
        last = await _until(client, COMMAND, command, lambda each: not each, seconds)
    except Forbidden:
        return True
    return not last


def _not_taken(command: Raw, seconds: float) -> str:
    meta = command["metadata"]
    name = f"{meta['namespace']}/{meta['name']}"
    return (
        f"no controller has carried out Command {name} after {seconds:g} s; is `pumice controller` running? "
        "The Command stays and is carried out when a controller starts; delete it if it should not be"
    )


def _not_reached(operation: Operation, raw: Raw, seconds: float) -> str:
    if not raw:
        return "was deleted"
    status = raw.get("status") or {}
    state = status.get("state") or ""
    said = state.get("message") if isinstance(state, Mapping) else status.get("message")
    why = f": {said}" if said else ""
    if operation.action == "CloseQueue":
        counts = ("pending", "inqueue", "running", "unknown", "completed")
        held = sum(status.get(name, 0) for name in counts)
        why = f": {counted(held, 'PodGroup')} in it"
    found = _state(raw) or "without a state"
    return f"is {found} after {seconds:g} s, expected {operation.target}{why}"


async def _until(
    client: "Client", kind: Kind, raw: Raw, holds: Callable[[Raw], bool], seconds: float
) -> Raw:
    """Watch an object until a condition holds, it is deleted, or the time is over.

    Returns:
        The object as it was seen last; empty if it is gone.
    """
    name, namespace = raw["metadata"]["name"], raw["metadata"].get("namespace")
    last = raw
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    last = await client.get(kind, name, namespace)
                except NotFound:
                    return {}
                if holds(last):
                    return last
                try:
                    version = last["metadata"]["resourceVersion"]
                    one = f"metadata.name={name}"
                    watched = client.collection(kind, namespace, field_selector=one)
                    events = watched.watch(version, _WATCH_SECONDS)
                    async for event, obj in events:
                        if event == "BOOKMARK":
                            continue
                        last = {} if event == "DELETED" else msgspec.json.decode(obj)
                        if not last or holds(last):
                            return last
                except (Forbidden, Gone, Unavailable):
                    await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        return last
