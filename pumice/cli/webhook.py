"""`pumice webhook`: the admission server."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pumice import __version__
from pumice.cli import lean
from pumice.cli.options import (
    AdmissionConf,
    CertificateNames,
    Kubeconfig,
    Level,
    LogLevel,
    MetricsPort,
    Server,
    Settings,
    State,
    scheduler_name_option,
    settings_option,
    whole_number,
)
from pumice.cli.output import write

EXAMPLES = (
    "pumice webhook --state queues.yaml --port 8080",
    "pumice webhook --kubeconfig FILE --tls-cert-file tls.crt --tls-private-key-file tls.key",
    "pumice webhook --webhook-service-name pumice-webhook --webhook-namespace pumice-system",
)


def _seconds(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise typer.BadParameter(f"{value}: expected a number of seconds") from None


Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        "--listen-address",
        help="Address to listen on: all in a pod, 127.0.0.1 elsewhere.",
    ),
]
Port = Annotated[
    int,
    typer.Option(
        "--port", metavar="N", parser=whole_number(0, 65535), help="Port; 0 takes a free one."
    ),
]
TlsCertificate = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert-file", metavar="FILE", help="Certificate to serve, renewed by another tool."
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-private-key-file", metavar="FILE", help="Its key."),
]
SchedulerName = Annotated[
    list[str] | None,
    scheduler_name_option("Schedulers whose pods are validated (volcano). Repeat it for several."),
]
EnabledAdmission = Annotated[
    str | None,
    typer.Option(
        "--enabled-admission",
        metavar="PATHS",
        help="Paths of the enabled endpoints, separated by commas; by default all.",
    ),
]
DrainSeconds = Annotated[
    float | None,
    typer.Option(
        "--drain-seconds",
        metavar="SECONDS",
        parser=_seconds,
        help="How long to answer requests after the signal to stop, at most 300 s; by default 5 in a pod, otherwise 0.",
    ),
]
SetPlugins = Annotated[
    list[str] | None,
    settings_option(
        "--set-plugins",
        "A setting of job plugins for pods of other controllers, as `pumice controller --set` has it.",
    ),
]
CheckConfig = Annotated[
    bool,
    typer.Option("--check-config", help="Check flags, settings and files, then exit with 0 or 2."),
]


def webhook(
    context: typer.Context,
    host: Host = None,
    port: Port = 8443,
    certificate: TlsCertificate = None,
    key: TlsKey = None,
    state: State = None,
    settings: Settings = None,
    admission_conf: AdmissionConf = None,
    scheduler_name: SchedulerName = None,
    enabled: EnabledAdmission = None,
    *,
    names: CertificateNames,
    drain_seconds: DrainSeconds = None,
    plugin_assignments: SetPlugins = None,
    check_config: CheckConfig = False,
    kubeconfig: Kubeconfig = None,
    server: Server = None,
    metrics_port: MetricsPort = None,
    log_level: LogLevel = Level.INFO,
) -> None:
    """Run the webhook: answer admission reviews over HTTP.

    With --state it answers from files, without a cluster. It serves the given certificate. Without one, in a pod or
    with --webhook-service-name, it creates certificates and makes the API server trust them; otherwise it serves plain HTTP on
    loopback only. Every replica answers reviews; there is no leader.

    The file of --admission-conf is read again when it changes, and may be created later. If it is invalid, the groups
    that were read before stay in effect; --check-config checks it in advance.
    """
    from pumice.cli.processes import logs

    with lean.importing_http():
        from pumice.cli.processes import admission_server, volcano_flags
        from pumice.cli.processes.components import report_ignored, run

    if volcano_flags.asks_for_version(context.args):
        write(f"pumice {__version__}")
        return
    level, arguments = logs.verbosity(log_level, context.args)
    admission, plugin_settings, ignored = admission_server.settings_from_flags(
        arguments, scheduler_name or (), settings or (), plugin_assignments or ()
    )
    answering = admission_server.AdmissionServer(
        admission=admission,
        plugin_settings=plugin_settings,
        paths=admission_server.read_paths(enabled),
        files=admission_server.paired(certificate, key),
        listening=admission_server.listening_at(host, port, metrics_port, drain_seconds),
        conf=admission_conf or None,
        view=admission_server.read_state(state),
        names=admission_server.checked(names),
    )
    if check_config:
        answering.check()
        return
    logs.configure(level=level)
    report_ignored(ignored)
    with lean.settled():
        run(partial(answering.run, kubeconfig, server))
