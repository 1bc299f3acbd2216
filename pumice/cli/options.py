"""Arguments and options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

from pumice.cli.output import Format
from pumice.cli.processes.logs import Level

__all__ = [
    "AdmissionConf",
    "AllNamespaces",
    "Context",
    "Files",
    "Kubeconfig",
    "LabelSelector",
    "LeaderElect",
    "LeaseNamespace",
    "LogLevel",
    "MetricsPort",
    "Namespace",
    "Output",
    "PluginSettings",
    "SchedulerConfig",
    "Server",
    "Settings",
    "State",
    "Timeout",
    "Wait",
    "Watch",
]

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Manifests, YAML or JSON, or a directory of them; - reads stdin.",
        show_default=False,
    ),
]
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="Objects of the cluster, for example its queues. Several files may follow.",
        show_default=False,
    ),
]
Output = Annotated[
    Format, typer.Option("-o", "--output", help="Form of the result.", show_default=True)
]
AdmissionConf = Annotated[
    str | None,
    typer.Option(
        "--admission-conf",
        metavar="FILE",
        help="Volcano's file of resource groups.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of admission, for example strict-upstream=true or rule.JOB-ZERO=off. "
        "Repeat it for several.",
        show_default=False,
    ),
]
PluginSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set-plugins",
        metavar="NAME=VALUE",
        help="A setting of job plugins, as `pumice controller --set` has it, for example "
        "wait-image=registry.example/busybox:1. Repeat it for several.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "-n",
        "--namespace",
        help="Namespace of the object; by default that of the kubeconfig.",
        show_default=False,
    ),
]
SchedulerConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="SCHED",
        help="The scheduler's configuration file; by default Pumice's defaults.",
        show_default=False,
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
        show_default=False,
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
        show_default=False,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Context of the kubeconfig; by default its current one.",
        show_default=False,
    ),
]
Server = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Address of the API server.", show_default=False),
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
        show_default=False,
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
        show_default=False,
    ),
]
