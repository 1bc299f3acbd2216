"""The flags of `pumice webhook` alone."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "CheckConfig",
    "DrainSeconds",
    "EnabledAdmission",
    "Host",
    "Port",
    "SchedulerName",
    "SecretName",
    "ServiceName",
    "ServiceNamespace",
    "SetPlugins",
    "TlsCertificate",
    "TlsKey",
    "Url",
]

Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        "--listen-address",
        help="Address to listen on: all in a pod, 127.0.0.1 elsewhere.",
        show_default=False,
    ),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")]
TlsCertificate = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert-file",
        metavar="FILE",
        help="Certificate to serve, renewed by another tool.",
        show_default=False,
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-private-key-file", metavar="FILE", help="Its key.", show_default=False),
]
SchedulerName = Annotated[
    list[str] | None,
    typer.Option(
        "--scheduler-name",
        help="Schedulers whose pods are validated (volcano). Repeat it for several.",
        show_default=False,
    ),
]
EnabledAdmission = Annotated[
    str | None,
    typer.Option(
        "--enabled-admission",
        metavar="PATHS",
        help="Paths of the enabled endpoints, separated by commas; by default all.",
        show_default=False,
    ),
]
ServiceName = Annotated[
    str | None,
    typer.Option(
        "--webhook-service-name",
        help="Service that the API server calls, for certificates of Pumice's own.",
        show_default=False,
    ),
]
ServiceNamespace = Annotated[
    str | None,
    typer.Option(
        "--webhook-namespace",
        help="Namespace of the Service; by default that of the pod.",
        show_default=False,
    ),
]
SecretName = Annotated[
    str, typer.Option("--webhook-secret-name", help="Secret with the certificate authorities.")
]
Url = Annotated[
    str | None,
    typer.Option(
        "--webhook-url",
        metavar="URL",
        help="Address that the API server calls instead of the Service.",
        show_default=False,
    ),
]
DrainSeconds = Annotated[
    float | None,
    typer.Option(
        "--drain-seconds",
        help="How long to answer requests after the signal to stop, at most 300 s; by default 5 in a pod, otherwise 0.",
        show_default=False,
    ),
]
SetPlugins = Annotated[
    list[str] | None,
    typer.Option(
        "--set-plugins",
        metavar="NAME=VALUE",
        help="A setting of job plugins for pods of other controllers, as `pumice controller --set` has it.",
        show_default=False,
    ),
]
CheckConfig = Annotated[
    bool,
    typer.Option("--check-config", help="Check flags, settings and files, then exit with 0 or 2."),
]
