"""`pumice webhook`: admission as a server."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.cli.components import connected, in_cluster, report_ignored, require_port, run
from pumice.cli.exits import UserError
from pumice.cli.options import AdmissionConf, Kubeconfig, MetricsPort, Server, Settings, State

if TYPE_CHECKING:
    from pumice.webhook.settings import AdmissionSettings

__all__ = ["EXAMPLES", "webhook"]

EXAMPLES = (
    "pumice webhook --state queues.yaml --port 8080",
    "pumice webhook --kubeconfig FILE --tls-cert-file tls.crt --tls-private-key-file tls.key",
    "pumice webhook --webhook-service-name pumice-webhook --webhook-namespace pumice-system",
)


_HostOption = Annotated[
    str | None,
    typer.Option(
        "--host",
        "--listen-address",
        help="Address to listen on: all in a pod, 127.0.0.1 elsewhere.",
        show_default=False,
    ),
]
_PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
]
_CertificateOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert-file",
        metavar="FILE",
        help="Certificate to serve, renewed by somebody else.",
        show_default=False,
    ),
]
_KeyOption = Annotated[
    Path | None,
    typer.Option("--tls-private-key-file", metavar="FILE", help="Its key.", show_default=False),
]
_SchedulerNameOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scheduler-name",
        help="Schedulers whose pods are judged (volcano). Repeat it for several.",
        show_default=False,
    ),
]
_EnabledOption = Annotated[
    str | None,
    typer.Option(
        "--enabled-admission",
        metavar="PATHS",
        help="Paths to answer on, with commas between; all otherwise.",
        show_default=False,
    ),
]
_ServiceOption = Annotated[
    str | None,
    typer.Option(
        "--webhook-service-name",
        help="Service that the API server calls, for certificates of Pumice's own.",
        show_default=False,
    ),
]
_NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--webhook-namespace", help="Its namespace; the pod's otherwise.", show_default=False
    ),
]
_SecretOption = Annotated[
    str, typer.Option("--webhook-secret-name", help="Secret that holds the authorities.")
]
_UrlOption = Annotated[
    str | None,
    typer.Option(
        "--webhook-url",
        metavar="URL",
        help="Address that the API server calls instead of the Service.",
        show_default=False,
    ),
]
_DrainSecondsOption = Annotated[
    float | None,
    typer.Option(
        "--drain-seconds",
        min=0,
        help="How long to go on answering after being told to stop: 5 in a pod, else 0.",
        show_default=False,
    ),
]


_PluginSettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set-plugins",
        metavar="NAME=VALUE",
        help="A setting of job plugins for pods of other controllers, as `pumice controller --set` has it.",
        show_default=False,
    ),
]
_CheckConfigOption = Annotated[
    bool,
    typer.Option("--check-config", help="Check flags, settings and files, and end: 0 or 2."),
]


def webhook(
    context: typer.Context,
    host: _HostOption = None,
    port: _PortOption = 8443,
    certificate: _CertificateOption = None,
    key: _KeyOption = None,
    state: State = None,
    settings: Settings = None,
    admission_conf: AdmissionConf = None,
    scheduler_name: _SchedulerNameOption = None,
    enabled: _EnabledOption = None,
    service: _ServiceOption = None,
    namespace: _NamespaceOption = None,
    secret: _SecretOption = "pumice-webhook-certs",
    url: _UrlOption = None,
    drain_seconds: _DrainSecondsOption = None,
    plugin_assignments: _PluginSettingsOption = None,
    check_config: _CheckConfigOption = False,
    kubeconfig: Kubeconfig = None,
    server: Server = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Run the webhook: answer admission reviews over HTTP.

    With --state it answers from files, without a cluster. It serves the given certificate; in a pod, or
    for a Service that is named, it makes certificates itself and has the API server trust them;
    otherwise it speaks plain HTTP, on loopback only. Every replica answers: there is no leader.

    The file of --admission-conf is read again whenever it changes, and may come later; one that cannot be
    used leaves the groups read before in force, and --check-config finds out beforehand.
    """
    from pumice.cli import lean

    with lean.importing():
        from pumice.cli import logs
        from pumice.cli.court import read_groups, read_plugin_settings, registry, snapshot
        from pumice.cli.manifests import read_objects
        from pumice.cli.serving import Names, compared, from_files, of_our_own
        from pumice.cluster.lifecycle import run_until_stopped
        from pumice.webhook.server import (
            InsecureAddressError,
            OfflineWorker,
            ServerSettings,
            WebhookWorker,
        )

    flags, ignored = _settings_among(context.args)
    admission = _admission_settings(flags, scheduler_name or (), settings or ())
    plugin_settings = read_plugin_settings(plugin_assignments, "--set-plugins")
    paths = _paths(enabled)
    if (certificate is None) != (key is None):
        raise UserError("--tls-cert-file and --tls-private-key-file go together, one is missing")
    listening = ServerSettings(
        host=host or ("0.0.0.0" if in_cluster() else "127.0.0.1"),
        port=port,
        metrics_port=metrics_port,
        drain_seconds=(5.0 if in_cluster() else 0.0) if drain_seconds is None else drain_seconds,
    )
    view = snapshot(read_objects(state)) if state else None
    if check_config:
        read_groups(admission_conf)
        from_files(certificate, key)
        return
    conf = Path(admission_conf) if admission_conf is not None else None
    logs.configure()
    report_ignored(ignored)

    async def work() -> None:
        require_port("--port", listening.host, port)
        require_port("--metrics-port", listening.host, metrics_port)
        files = from_files(certificate, key)
        try:
            if view is not None:
                offline = OfflineWorker(
                    view,
                    registry(),
                    admission,
                    listening,
                    files,
                    paths=paths,
                    conf=conf,
                    plugin_settings=plugin_settings,
                )
                await run_until_stopped(offline.tasks())
                return
            async with connected(kubeconfig, server) as client:
                names = Names(service, namespace, secret, url)
                certificates = (
                    compared(files, client, names) if files else of_our_own(client, names)
                )
                worker = WebhookWorker(
                    client,
                    registry(),
                    admission,
                    listening,
                    certificates,
                    paths=paths,
                    conf=conf,
                    plugin_settings=plugin_settings,
                )
                await run_until_stopped(worker.tasks())
        except InsecureAddressError as error:
            raise UserError(str(error)) from None

    with lean.settled():
        run(work)


def _admission_settings(
    flags: Sequence[str], names: Sequence[str], assignments: Sequence[str]
) -> "AdmissionSettings":
    from pumice.cli.court import read_settings

    named = [f"scheduler-name={name}" for name in names]
    return read_settings([*flags, *named, *assignments])


def _settings_among(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Settings of admission that are spelled as flags, as Volcano does, and what is none."""
    from pumice.webhook.settings import LEVELS_BY, AdmissionSettings

    known = {
        name.replace("_", "-") for name in AdmissionSettings.declared() if name not in LEVELS_BY
    }
    switches = {
        name.replace("_", "-")
        for name, field in AdmissionSettings.declared().items()
        if field.type is bool
    }
    settings: list[str] = []
    others: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.lstrip("-").partition("=")
        if argument.startswith("--") and name == "feature-gates":
            wanted, unknown = _features(value if equals or not rest else rest.pop(0))
            settings += wanted
            others += unknown
        elif not argument.startswith("-") or name not in known:
            others.append(argument)
        elif equals:
            settings.append(f"{name}={value}")
        elif name in switches:
            settings.append(f"{name}=true")  # a flag of Go's never takes the next word
        else:
            settings.append(f"{name}={rest.pop(0) if rest else ''}")
    return settings, others


_FEATURES = {"SchedulingGatesQueueAdmission": "scheduling-gates-queue-admission"}
"""Volcano's feature gates that are settings here."""


def _features(gates: str) -> tuple[list[str], list[str]]:
    """Settings among `Name=true,…`, and the gates that are none."""
    settings: list[str] = []
    others: list[str] = []
    for gate in filter(None, gates.split(",")):
        name, equals, value = gate.partition("=")
        if name in _FEATURES:
            settings.append(f"{_FEATURES[name]}={value if equals else 'true'}")
        else:
            others.append(f"--feature-gates={gate}")
    return settings, others


def _paths(enabled: str | None) -> tuple[str, ...] | None:
    """Paths to answer on; None for all."""
    from pumice.webhook.registrations import enabled_paths

    if enabled is None:
        return None
    try:
        return enabled_paths(enabled)
    except ValueError as error:
        raise UserError(f"--enabled-admission: {error}") from None
