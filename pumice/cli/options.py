"""Arguments and options that several verbs share.

Where verbs explain the same option in other words, a function here declares it and the verb brings the help text. Options that go
together are a struct: a verb has one parameter of this type, and the parser an option for each field (`app.py`).
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from pumice.cli.exits import UserError
from pumice.cli.output import Form, Format, ListForm

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from pumice.cluster.client import Client


class Level(StrEnum):
    """Levels of logging; a level includes the more severe ones."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def config_option(text: str, *aliases: str) -> Any:
    """`--config`, the configuration of the scheduler, with a help text."""
    return typer.Option("--config", *aliases, metavar="SCHED", help=text)


def namespace_option(text: str, *aliases: str) -> Any:
    """`--namespace` with a help text."""
    return typer.Option("-n", "--namespace", *aliases, help=text)


def whole_number(least: int, most: int | None = None) -> Callable[[object], int]:
    """A `parser` of an option that takes whole numbers in these bounds. The words are ours, with any version of typer."""

    def parsed(value: object) -> int:
        try:
            found = int(str(value))
        except ValueError:
            found = least - 1
        if found < least or (most is not None and found > most):
            bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise typer.BadParameter(f"{value}: expected a whole number {bounds}")
        return found

    return parsed


def read_seconds(option: str, text: str) -> float:
    """Read a duration: `500ms`, `1s`, `1m30s`, or seconds.

    Raises:
        UserError: The text is not a duration, or not above zero.
    """
    from pumice.api.durations import parse_seconds

    try:
        seconds: float | None = float(text)
    except ValueError:
        seconds = parse_seconds(text)
    if seconds is None or not 0 < seconds < float("inf"):
        raise UserError(f"{option} {text!r}: expected a duration such as 500ms, 1s or 2m")
    return seconds


def output_option(text: str) -> Any:
    """`--output`, the form of the result, with a help text."""
    return typer.Option("-o", "--output", help=text)


def port_option(of: str) -> Any:
    """`--port` of what a verb serves."""
    return typer.Option(
        "--port",
        metavar="N",
        parser=whole_number(0, 65535),
        help=f"Port of the {of}; 0 takes a free port.",
    )


def scheduler_name_option(text: str) -> Any:
    """`--scheduler-name`, which may be repeated, with a help text."""
    return typer.Option("--scheduler-name", help=text)


def settings_option(name: str, text: str) -> Any:
    """An option for settings, which may be repeated, with a help text."""
    return typer.Option(name, metavar="NAME=VALUE", help=text)


def state_option(text: str) -> Any:
    """`--state`, files with objects, with a help text."""
    return typer.Option("--state", metavar="FILE", help=text)


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help="Manifests, YAML or JSON, or a directory of them; - reads stdin."
    ),
]
State = Annotated[
    list[str] | None,
    state_option("Objects of the cluster, for example its queues. Several files may follow."),
]
Output = Annotated[Format, output_option("Form of the result.")]
ObjectOutput = Annotated[Form, output_option("Form of the result.")]
ListOutput = Annotated[ListForm, output_option("Form of the result; wide has more columns.")]
AdmissionConf = Annotated[
    str | None,
    typer.Option("--admission-conf", metavar="FILE", help="Volcano's file of resource groups."),
]
Settings = Annotated[
    list[str] | None,
    settings_option(
        "--set",
        "A setting of admission, for example strict-upstream=true or rule.JOB-ZERO=off. Repeat it for several.",
    ),
]
PluginSettings = Annotated[
    list[str] | None,
    settings_option(
        "--set-plugins",
        "A setting of job plugins, as `pumice controller --set` has it, for example "
        "wait-image=registry.example/busybox:1. Repeat it for several.",
    ),
]
Namespace = Annotated[
    str | None,
    namespace_option("Namespace of the object; by default that of the kubeconfig."),
]
SchedulerConfig = Annotated[
    Path | None,
    config_option(
        "The scheduler's configuration in Volcano's format; by default Pumice's defaults."
    ),
]
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="All namespaces.")]
LabelSelector = Annotated[
    str | None,
    typer.Option(
        "-l",
        "--selector",
        metavar="LABELS",
        help="Only objects with these labels, for example team=vision,stage!=test.",
    ),
]
_Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is done.")]
_Timeout = Annotated[
    str,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="How long to wait for the controller, and with --wait until it is done; 0 only creates the Command.",
    ),
]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="Print again after each change.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Path of a kubeconfig file; by default $KUBECONFIG, the pod's service account, or ~/.kube/config.",
    ),
]
_Context = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="Context of the kubeconfig; by default its current one."
    ),
]
Server = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Address of the API server."),
]
_LeaderElect = Annotated[
    bool,
    typer.Option(
        "--leader-elect/--no-leader-elect",
        help="Work only while holding the Lease of this component.",
    ),
]
_LeaseNamespace = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-namespace",
        "--lock-object-namespace",
        metavar="NAMESPACE",
        help="Namespace of the Lease; by default that of the pod.",
    ),
]
_LeaseDuration = Annotated[
    str,
    typer.Option(
        "--leader-elect-lease-duration",
        metavar="DURATION",
        help="Time without renewal after which another process may take the Lease.",
    ),
]
_RenewDeadline = Annotated[
    str,
    typer.Option(
        "--leader-elect-renew-deadline",
        metavar="DURATION",
        help="Time without renewal after which the leader stops working; shorter than the lease "
        "duration.",
    ),
]
_RetryPeriod = Annotated[
    str,
    typer.Option(
        "--leader-elect-retry-period",
        metavar="DURATION",
        help="Time between two renewals; shorter than the renew deadline.",
    ),
]
StallTimeout = Annotated[
    str,
    typer.Option(
        "--stall-timeout",
        metavar="DURATION",
        help="Time that one scheduling cycle or one pass of a controller may take; after that /healthz fails "
        "and the Lease is not renewed.",
    ),
]
LogLevel = Annotated[
    Level,
    typer.Option(
        "--log-level",
        help="Minimum level of log messages; debug names every review that is admitted. "
        "Volcano's --v=4 and above count as debug.",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="N",
        parser=whole_number(0, 65535),
        help="Serve /metrics, /healthz and /readyz here; 0 takes a free port.",
    ),
]


_ServiceName = Annotated[
    str | None,
    typer.Option(
        "--webhook-service-name",
        help="Service that the API server calls, for certificates of Pumice's own.",
    ),
]
_ServiceNamespace = Annotated[
    str | None,
    typer.Option(
        "--webhook-namespace", help="Namespace of the Service; by default that of the pod."
    ),
]
_SecretName = Annotated[
    str, typer.Option("--webhook-secret-name", help="Secret with the certificate authorities.")
]
_Url = Annotated[
    str | None,
    typer.Option(
        "--webhook-url",
        metavar="URL",
        help="Address that the API server calls instead of the Service.",
    ),
]


class ClusterOptions(msgspec.Struct, frozen=True):
    """The options that name an API server.

    Attributes:
        kubeconfig: Path of a kubeconfig file.
        context: Name of a context of it.
        server: URL of the API server.
    """

    kubeconfig: Kubeconfig = None
    context: _Context = None
    server: Server = None

    def connect(self) -> "AbstractAsyncContextManager[Client]":
        """Open a session with the API server, for an `async with` block."""
        from pumice.cli import lean

        with lean.importing_http():
            from pumice.cluster.client import Client

        kubeconfig = str(self.kubeconfig) if self.kubeconfig else None
        return Client.connect(kubeconfig, self.server, context=self.context, fail_fast=True)


class OrderOptions(msgspec.Struct, frozen=True):
    """The options of verbs that create Commands.

    Attributes:
        wait: Whether to wait until the operation is done.
        timeout: How long to wait, as a duration.
        output: Form of the result.
    """

    wait: _Wait = False
    timeout: _Timeout = "30s"
    output: ObjectOutput = Form.TEXT


class ElectionOptions(msgspec.Struct, frozen=True):
    """The options of leader election, as users write them.

    Attributes:
        leader_elect: Whether to work only while holding the Lease.
        lease_namespace: Its namespace; None for that of the pod.
        lease_duration: Time without renewal after which another process may take it, as a duration.
        renew_deadline: Time without renewal after which the leader stops working.
        retry_period: Time between two renewals.
    """

    leader_elect: _LeaderElect = True
    lease_namespace: _LeaseNamespace = None
    lease_duration: _LeaseDuration = "15s"
    renew_deadline: _RenewDeadline = "10s"
    retry_period: _RetryPeriod = "2s"


class CertificateNames(msgspec.Struct, frozen=True):
    """Names in certificates that Pumice creates.

    Attributes:
        service: Service that the API server calls.
        namespace: Its namespace.
        secret: Secret with the certificate authorities.
        url: Address that it calls instead.
    """

    service: _ServiceName = None
    namespace: _ServiceNamespace = None
    secret: _SecretName = "pumice-webhook-certs"
    url: _Url = None
