"""`pumice webhook`: the admission server."""

from functools import partial

import typer

from pumice import __version__
from pumice.cli.options import (
    AdmissionConf,
    Kubeconfig,
    LogLevel,
    MetricsPort,
    Server,
    Settings,
    State,
)
from pumice.cli.output import write
from pumice.cli.processes import webhook_flags as flags
from pumice.cli.processes.components import report_ignored, run
from pumice.cli.processes.logs import Level

__all__ = ["EXAMPLES", "webhook"]

EXAMPLES = (
    "pumice webhook --state queues.yaml --port 8080",
    "pumice webhook --kubeconfig FILE --tls-cert-file tls.crt --tls-private-key-file tls.key",
    "pumice webhook --webhook-service-name pumice-webhook --webhook-namespace pumice-system",
)


def webhook(
    context: typer.Context,
    host: flags.Host = None,
    port: flags.Port = 8443,
    certificate: flags.TlsCertificate = None,
    key: flags.TlsKey = None,
    state: State = None,
    settings: Settings = None,
    admission_conf: AdmissionConf = None,
    scheduler_name: flags.SchedulerName = None,
    enabled: flags.EnabledAdmission = None,
    service: flags.ServiceName = None,
    namespace: flags.ServiceNamespace = None,
    secret: flags.SecretName = "pumice-webhook-certs",
    url: flags.Url = None,
    drain_seconds: flags.DrainSeconds = None,
    plugin_assignments: flags.SetPlugins = None,
    check_config: flags.CheckConfig = False,
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
    from pumice.cli.processes import lean

    with lean.importing():
        from pumice.cli.files import checking, manifests
        from pumice.cli.processes import admission_server as ours
        from pumice.cli.processes import logs, serving, volcano_flags

    if volcano_flags.asks_for_version(context.args):
        write(f"pumice {__version__}")
        return
    level, arguments = logs.verbosity(log_level, context.args)
    as_flags, ignored = volcano_flags.settings_among(arguments)
    named = [f"scheduler-name={name}" for name in scheduler_name or ()]
    admission, plugin_settings = ours.read_settings(
        [*as_flags, *named, *(settings or ())], plugin_assignments or ()
    )
    answering = ours.AdmissionServer(
        admission=admission,
        plugin_settings=plugin_settings,
        paths=ours.read_paths(enabled),
        files=ours.paired(certificate, key),
        listening=ours.listening_at(host, port, metrics_port, drain_seconds),
        conf=admission_conf or None,
        view=checking.snapshot(manifests.read_objects(state, may_be_empty=True)) if state else None,
        names=serving.named(service, namespace, secret, url),
    )
    if check_config:
        answering.check()
        return
    logs.configure(level=level)
    report_ignored(ignored)
    with lean.settled():
        run(partial(answering.run, kubeconfig, server))
