"""Shared by the components: event loop, logs, health, settings of certificates, and error messages at start.

`/healthz`, `/readyz` and `/metrics` of a component without other HTTP endpoints are served in a thread of their own, so that a
scheduling cycle or a long pass of the controller, which blocks the main event loop, does not keep the kubelet waiting. `/healthz`
and `/readyz` read single values. Metrics are collected in the main loop, because some are computed from a state that a cycle
changes; who asks in the middle of a cycle waits for its end.
"""

import asyncio
import errno
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from prometheus_client import CollectorRegistry

from pumice.cli.exits import FINE, REFUSED, UserError, finish
from pumice.cli.live.sessions import error_text
from pumice.cli.options import ElectionOptions, Level, read_seconds
from pumice.cluster.side_loop import call_in, side_loop
from pumice.serving.connections import CONNECTIONS, HttpLimits, affordable
from pumice.serving.http_server import HttpError, HttpServer
from pumice.serving.probes import Check, Probes, collected

if TYPE_CHECKING:
    from pumice.certs.rotation import CertSettings
    from pumice.cluster.client import Client
    from pumice.cluster.elected import ElectedWorker
    from pumice.cluster.leader import LeaseTimes

logger = logging.getLogger("pumice")


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a component until it gets a signal to stop.

    Raises:
        UserError: It cannot start with these options. typer.Exit: One of its tasks failed, which has been logged.
    """
    import faulthandler

    import uvloop

    from pumice.cluster.connection import ConfigurationError
    from pumice.cluster.errors import ApiError
    from pumice.cluster.event_loop import EventLoop
    from pumice.cluster.lifecycle import TaskEndedError

    if not faulthandler.is_enabled():
        faulthandler.enable()  # a crash in a library written in C ends the process without a log entry
    try:
        uvloop.run(work(), loop_factory=EventLoop)
    except ConfigurationError as error:
        raise UserError(str(error)) from None
    except ApiError as error:
        raise UserError(error_text(error)) from None
    except TaskEndedError as error:
        logger.error("%s", error)
        finish(REFUSED)
    except (
        OSError,
        SystemExit,
    ) as error:  # of which other verbs say nothing: a closed pipe, exit()
        logger.error("stopped by an unexpected error", exc_info=error)
        finish(REFUSED)


def run_worker(
    kubeconfig: Path | None,
    server: str | None,
    metrics_port: int | None,
    make: "Callable[[Client], ElectedWorker[Any, Any]]",
) -> NoReturn:
    """Run a component with leader election until it gets a signal to stop, and end the process.

    Args:
        kubeconfig: How to reach the API server.
        server: Its URL, instead.
        metrics_port: Port for health and metrics; None for none.
        make: Creates the component from a session.

    Raises:
        UserError: It cannot start with these options. typer.Exit: One of its tasks failed, which has been logged.
    """
    from pumice.cli import lean
    from pumice.cluster.lifecycle import run_until_stopped

    async def work() -> None:
        async with connected(kubeconfig, server) as client:
            worker = make(client)
            health = serving_health(
                metrics_port,
                worker.metrics.registry,
                worker.checks,
                worker.notes,
                alive=worker.heartbeat.problem,
            )
            async with health:
                await run_until_stopped(worker.tasks())

    # A full collection stops the event loop, the longer the more pods there are.
    with lean.settled():
        run(work)
    # Python would free the objects of the cluster one by one, for seconds in which the next leader needs the processor.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(FINE)


@asynccontextmanager
async def connected(kubeconfig: Path | None, server: str | None) -> "AsyncIterator[Client]":
    """A session with the API server that the options name."""
    from pumice.cluster.client import Client

    async with Client.connect(kubeconfig, server) as client:
        logger.info("API server %s", client.connection.server)
        yield client


_COLLECT_SECONDS = 9.0
"""How long `/metrics` waits for the main event loop; by default Prometheus waits for ten seconds."""


@asynccontextmanager
async def serving_health(
    port: int | None,
    registry: CollectorRegistry,
    checks: Mapping[str, Check],
    notes: Mapping[str, Check] | None = None,
    *,
    alive: Check = lambda: None,
    host: str = "0.0.0.0",
    limits: HttpLimits | None = None,
) -> AsyncIterator[int | None]:
    """Serve the kubelet and Prometheus inside the block, which gets the port.

    Args:
        port: Where to listen; 0 takes a free port, and nothing is served if it is None.
        registry: What `/metrics` shows; it is collected in the running loop.
        checks: What must hold for the component to be ready, by name.
        notes: Problems to report although the component is ready, by name.
        alive: Returns why the process must be restarted. This and the checks are called in another thread.
        host: Address to listen on; all, because the kubelet and Prometheus come from outside the pod.
        limits: Limits for clients; the webhook's if None.

    Raises:
        UserError: The port cannot be listened on.
    """
    if port is None:
        yield None
        return
    main = asyncio.get_running_loop()

    async def collect() -> bytes:
        waiting = asyncio.run_coroutine_threadsafe(collected(registry), main)
        try:
            async with asyncio.timeout(_COLLECT_SECONDS):
                return await asyncio.wrap_future(waiting)
        except TimeoutError:
            problem = f"the event loop has not turned for {_COLLECT_SECONDS:g} s"
            raise HttpError(503, problem) from None

    probes = Probes(registry, checks, notes, alive=alive, collect=collect)
    server = HttpServer(probes.answer, limits or HttpLimits(affordable(CONNECTIONS, 1)))
    async with side_loop("health") as side:
        try:
            try:
                await call_in(side, lambda: server.open(host, port))
            except OSError as error:
                raise UserError(f"--metrics-port {port}: {why_no_port(error)}") from None
            logger.info("health and metrics on port %d", server.port)
            yield server.port
        finally:
            await call_in(side, lambda: server.close(0.0))


def require_port(option: str, host: str, port: int | None) -> None:
    """Check that a port is free; otherwise a later failure would end in a traceback.

    Raises:
        UserError: It is taken, or the address is not one of this machine.
    """
    if port is None:
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(f"{option} {port} on {host}: {why_no_port(error)}") from None


def why_no_port(error: OSError) -> str:
    """Why a port cannot be listened on, in the words of the system instead of asyncio's."""
    why = os.strerror(error.errno) if error.errno else str(error)
    return f"{why}; name another one" if error.errno in (errno.EADDRINUSE, errno.EACCES) else why


def is_in_pod() -> bool:
    """Whether this process runs in a pod."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def read_lease_times(election: ElectionOptions) -> "LeaseTimes":
    """Read the three times of leader election.

    Raises:
        UserError: One is not a duration, or their order is wrong.
    """
    from pumice.cluster.leader import LeaseTimes

    try:
        return LeaseTimes(
            lease_duration=read_seconds("--leader-elect-lease-duration", election.lease_duration),
            renew_deadline=read_seconds("--leader-elect-renew-deadline", election.renew_deadline),
            retry_period=read_seconds("--leader-elect-retry-period", election.retry_period),
        )
    except ValueError as error:
        raise UserError(str(error)) from None


def start_logs(level: Level, arguments: Sequence[str]) -> None:
    """Log from the level of `--log-level` or of Volcano's `--v`, and report the other arguments that have no effect here."""
    from pumice.cli.processes import logs

    level, ignored = logs.verbosity(level, arguments)
    logs.configure(level=level)
    report_ignored(ignored)


def report_ignored(arguments: Sequence[str]) -> None:
    """Report arguments that have no effect here; Volcano's charts pass some."""
    if arguments:
        logger.info("ignored arguments: %s", " ".join(arguments))


def cert_settings(
    service: str,
    namespace: str,
    secret: str,
    *,
    names: tuple[str, ...] = (),
    addresses: tuple[str, ...] = (),
) -> "CertSettings":
    """Certificates for a Service, trusted by the webhook configurations of every endpoint.

    Args:
        service: Service that the API server calls.
        namespace: Its namespace.
        secret: Secret with the certificate authorities.
        names: Further DNS names, for webhooks that are called by URL.
        addresses: Further IP addresses, likewise.
    """
    from pumice.certs.rotation import CertSettings
    from pumice.webhook.registrations import REGISTRATIONS

    return CertSettings(
        service=service,
        namespace=namespace,
        secret=secret,
        mutating=tuple(each.configuration_name for each in REGISTRATIONS if each.mutating),
        validating=tuple(each.configuration_name for each in REGISTRATIONS if not each.mutating),
        extra_names=names,
        extra_addresses=addresses,
    )
