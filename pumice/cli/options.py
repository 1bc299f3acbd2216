"""Arguments and options that several verbs share.

Where verbs explain the same option in other words, a function here declares it and the verb brings the help text.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pumice.cli.live.listing import Form, ListForm
from pumice.cli.output import Format

__all__ = [
    "AdmissionConf",
    "AllNamespaces",
    "Context",
    "Files",
    "Kubeconfig",
    "LabelSelector",
    "LeaderElect",
    "LeaseNamespace",
    "Level",
    "ListOutput",
    "LogLevel",
    "MetricsPort",
    "Namespace",
    "ObjectOutput",
    "Output",
    "PluginSettings",
    "SchedulerConfig",
    "Server",
    "Settings",
    "State",
    "Timeout",
    "Wait",
    "Watch",
    "config_option",
    "namespace_option",
    "output_option",
    "scheduler_name_option",
    "settings_option",
    "state_option",
]


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


def output_option(text: str) -> Any:
    """`--output`, the form of the result, with a help text."""
    return typer.Option("-o", "--output", help=text)


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
    config_option("The scheduler's configuration file; by default Pumice's defaults."),
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
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is done.")]
Timeout = Annotated[
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
Context = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="Context of the kubeconfig; by default its current one."
    ),
]
Server = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Address of the API server."),
]
LeaderElect = Annotated[
    bool,
    typer.Option(
        "--leader-elect/--no-leader-elect",
        help="Work only while holding the Lease of this component.",
    ),
]
LeaseNamespace = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-namespace",
        "--lock-object-namespace",
        metavar="NAMESPACE",
        help="Namespace of the Lease; by default that of the pod.",
    ),
]
LeaseDuration = Annotated[
    str,
    typer.Option(
        "--leader-elect-lease-duration",
        metavar="DURATION",
        help="Time without renewal after which another process may take the Lease.",
    ),
]
RenewDeadline = Annotated[
    str,
    typer.Option(
        "--leader-elect-renew-deadline",
        metavar="DURATION",
        help="Time without renewal after which the leader stops working; shorter than the lease "
        "duration.",
    ),
]
RetryPeriod = Annotated[
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
        min=0,
        max=65535,
        help="Serve /metrics, /healthz and /readyz here; 0 takes a free port.",
    ),
]
