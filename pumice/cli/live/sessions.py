"""Commands that read a cluster: one event loop, and each failure in one line."""

import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pumice.cli.exits import UserError

if TYPE_CHECKING:
    from pumice.api.kinds import Kind
    from pumice.cluster.client import Client, Object
    from pumice.cluster.errors import ApiError

T = TypeVar("T")

_OTHER = "choose another one with --context NAME, --kubeconfig FILE or --master URL"


def run(work: Coroutine[Any, Any, T], *, only_reads: bool = True) -> T:
    """Run a command that reads from the API server.

    Args:
        work: What it does.
        only_reads: Whether it changes nothing, so that it may end as soon as its output has no reader.

    Raises:
        UserError: No API server is configured, or it cannot be reached, or it refuses a request.
    """
    import asyncio

    from pumice.cluster.connection import ConfigurationError, NoServerError
    from pumice.cluster.errors import ApiError

    try:
        return asyncio.run(_interruptible(_while_read(work) if only_reads else work))
    except NoServerError as error:
        raise UserError(f"{error}{_running()}") from None
    except ConfigurationError as error:
        raise UserError(str(error)) from None
    except ApiError as error:
        raise UserError(error_text(error)) from None


def _running() -> str:
    """The clusters of `pumice dev --detach`, for a user who has not named one."""
    from pumice.cli.development import detached

    commands = [f"`export KUBECONFIG={each.kubeconfig}`" for each in detached.running()]
    return f"; `pumice dev` runs one: {' or '.join(commands[:3])}" if commands else ""


async def _interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Do the work; Ctrl-C ends it also while it waits for events.

    `asyncio.run` has a handler for Ctrl-C, but the signal does not wake the event loop. If it arrives just before the
    loop waits, it is noticed with the next event, and a watch may be silent for minutes. Signals wake a loop that has a
    signal handler of its own; the handler of `asyncio.run` stays in place.
    """
    import asyncio
    import signal

    handler = signal.getsignal(signal.SIGINT)
    with suppress(RuntimeError):  # another thread than the main one gets no signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
        signal.signal(signal.SIGINT, handler)
    return await work


async def _while_read(work: Coroutine[Any, Any, T]) -> T:
    """Do the work until the reader of stdout has gone, as `head` does; without that it would be noticed when the next line is written.

    Raises:
        BrokenPipeError: It has gone.
    """
    import asyncio

    loop, doing = asyncio.get_running_loop(), asyncio.ensure_future(work)
    pipe = _pipe()
    closed: list[bool] = []

    def end() -> None:
        closed.append(True)
        doing.cancel()

    if pipe is not None:
        loop.add_reader(pipe, end)  # of a pipe's writing end, only its error is ever reported
    try:
        return await doing
    except asyncio.CancelledError:
        if closed:
            raise BrokenPipeError from None
        raise
    finally:
        if pipe is not None:
            loop.remove_reader(pipe)


def _pipe() -> int | None:
    """The descriptor of stdout, if it is a pipe."""
    import stat

    try:
        descriptor = sys.stdout.fileno()
        return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError, AttributeError):  # closed, or replaced by what is no file
        return None


def error_text(error: "ApiError") -> str:
    """An error of the API server as one line for the user."""
    from pumice.cluster.errors import Forbidden, InvalidName
    from pumice.cluster.failures import CONNECTION_FAILED, NOT_TRUSTED

    if error.reason == CONNECTION_FAILED:
        return f"{error.message}; is the cluster running? Otherwise {_OTHER}"
    if error.reason == NOT_TRUSTED:
        return f"{error.message}; {_OTHER}"
    if isinstance(error, Forbidden):
        return f"not allowed: {error.message}"
    if isinstance(error, InvalidName):
        return error.message
    return str(error)


async def get(client: "Client", kind: "Kind", name: str, namespace: str | None) -> "Object":
    """Read one object.

    Raises:
        UserError: It does not exist.
    """
    from pumice.cluster.errors import InvalidName, NotFound

    where = namespace if kind.namespaced else None
    try:
        return await client.get(kind, name, where)
    except InvalidName:
        raise
    except NotFound:
        place = f" in namespace {where}" if where else ""
        word = kind.kind.lower()
        hint = await _hint(client, kind, name, where)
        raise UserError(f"{word}/{name}: there is no such {kind.kind}{place}{hint}") from None


async def _hint(client: "Client", kind: "Kind", name: str, namespace: str | None) -> str:
    """What was probably meant by a name that does not exist, as far as the user may read it.

    Raises:
        UserError: The kind is not installed.
    """
    from pumice.api.fields import did_you_mean
    from pumice.api.kinds import JOB, NAMESPACE
    from pumice.cli.live.names import names_in
    from pumice.cluster.errors import ApiError, NotFound

    try:
        found = await names_in(client, kind, namespace)
    except NotFound:
        raise UserError(_not_installed(kind)) from None
    except ApiError:
        return ""
    if hint := did_you_mean(name, found):
        return hint
    if kind == JOB and (hint := await _of_another_kind(client, name, namespace)):
        return hint
    if namespace and not found:
        try:
            await client.get(NAMESPACE, namespace)
        except NotFound:
            return ", and no such namespace either"
        except ApiError:
            pass
    return ""


async def _of_another_kind(client: "Client", name: str, namespace: str | None) -> str:
    """What has the name that a Job was expected to have, as far as the user may read it; empty if nothing has."""
    from pumice.api.keys import JOB_NAME
    from pumice.api.kinds import INDEXED_JOB, POD, POD_GROUP
    from pumice.cluster.errors import ApiError

    with suppress(ApiError):
        await client.get(INDEXED_JOB, name, namespace)
        return f", only one of {INDEXED_JOB.api_version}; explain one of its pods: pod/NAME"
    with suppress(ApiError):
        labels = (await client.get(POD, name, namespace))["metadata"].get("labels") or {}
        of = f"of job/{labels[JOB_NAME]}" if JOB_NAME in labels else "of no Job"
        return f", but a pod {of}; `pumice explain pod/{name}` explains it"
    with suppress(ApiError):
        meta = (await client.get(POD_GROUP, name, namespace))["metadata"]
        owners = [
            f" of {each['kind'].lower()}/{each['name']}"
            for each in meta.get("ownerReferences") or ()
        ]
        return f", but a PodGroup{''.join(owners[:1])}; a PodGroup is explained with its Job, or with one of its pods"
    return ""


async def read_collection(
    client: "Client", kind: "Kind", namespace: str | None, selector: str | None = None
) -> "tuple[list[Object], str]":
    """Read a collection, 500 objects a request.

    Returns:
        The objects, and the resourceVersion from which changes can be watched.

    Raises:
        UserError: The kind is not installed.
    """
    from pumice.cluster.errors import Gone, InvalidName, NotFound

    for is_last in (False, False, True):
        try:
            found = await client.list(kind, namespace, label_selector=selector)
        except Gone:  # it took longer than the API server remembers the state of the first page
            if is_last:
                raise
        except InvalidName:
            raise
        except NotFound:
            raise UserError(_not_installed(kind)) from None
        else:
            return found["items"], str((found.get("metadata") or {}).get("resourceVersion", ""))
    raise AssertionError


def _not_installed(kind: "Kind") -> str:
    return f"the cluster has no kind {kind.kind} ({kind.api_version}): install Pumice, or its CRDs"


def name_of(text: str, kind: "Kind") -> str:
    """The name in `NAME` or `KIND/NAME`.

    Raises:
        UserError: It is of another kind, or empty.
    """
    word, slash, name = text.rpartition("/")
    if not name or (slash and word.lower() not in kind.words):
        raise UserError(f"{text!r}: expected NAME or {kind.words[0]}/NAME")
    return name
