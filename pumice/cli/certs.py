"""`pumice certs`: the webhook's certificate authorities as a process."""

from typing import TYPE_CHECKING, Annotated

import typer

from pumice.cli.options import (
    ElectionOptions,
    Kubeconfig,
    MetricsPort,
    Server,
    namespace_option,
)

if TYPE_CHECKING:
    from pumice.certs.keeper import CertificateManager
    from pumice.cluster.client import Client
    from pumice.cluster.elected import ElectionSettings

EXAMPLES = (
    "pumice certs --service pumice-webhook --namespace pumice-system",
    "pumice certs --once --kubeconfig ~/.kube/config --namespace pumice-system",
)


_ServiceOption = Annotated[
    str,
    typer.Option("--service", "--webhook-service-name", help="Service that the API server calls."),
]
_NamespaceOption = Annotated[
    str | None,
    namespace_option(
        "Namespace of the Service and of the Secret; by default that of the pod.",
        "--webhook-namespace",
    ),
]
_SecretOption = Annotated[
    str,
    typer.Option(
        "--secret", "--webhook-secret-name", help="Secret with the certificate authorities."
    ),
]
_OnceOption = Annotated[
    bool, typer.Option("--once", help="Check and update everything once, then exit.")
]


def certs(
    context: typer.Context,
    kubeconfig: Kubeconfig = None,
    server: Server = None,
    service: _ServiceOption = "pumice-webhook",
    namespace: _NamespaceOption = None,
    secret: _SecretOption = "pumice-webhook-certs",
    once: _OnceOption = False,
    *,
    election: ElectionOptions,
    metrics_port: MetricsPort = None,
) -> None:
    """Keep the webhook's certificate authorities and their trust.

    The authorities are kept in a Secret, which is created if it is missing. Their certificates are written to the
    webhook configurations as caBundle. `pumice webhook` does this itself; use this verb if it has no rights for it.
    """
    from pumice.certs.keeper import CertificateManager
    from pumice.cli.processes import logs
    from pumice.cli.processes.components import (
        cert_settings,
        connected,
        read_lease_times,
        report_ignored,
        run,
    )
    from pumice.cluster.clock import identity
    from pumice.cluster.elected import ElectionSettings

    logs.configure()
    report_ignored(context.args)
    lease_times = read_lease_times(election)

    async def work() -> None:
        async with connected(kubeconfig, server) as client:
            where = namespace or client.connection.namespace
            keeper = CertificateManager(client, cert_settings(service, where, secret))
            if once:
                await keeper.look()
                return
            election_settings = ElectionSettings(
                lease_name="pumice-certs",
                lease_namespace=election.lease_namespace or where,
                identity=identity(),
                leader_elect=election.leader_elect,
                lease_times=lease_times,
            )
            await _keep(client, keeper, election_settings, metrics_port)

    run(work)


async def _keep(
    client: "Client",
    keeper: "CertificateManager",
    election_settings: "ElectionSettings",
    metrics_port: int | None,
) -> None:
    """Keep certificates while this process leads, until it gets a signal to stop."""
    from prometheus_client import CollectorRegistry

    from pumice.cli.processes.components import serving_health
    from pumice.cluster.elected import Heartbeat, run_elected
    from pumice.cluster.events import EventRecorder
    from pumice.cluster.lifecycle import SupervisedTask, run_until_stopped
    from pumice.cluster.set_aside import ObjectFaults

    registry = CollectorRegistry()
    recorder = EventRecorder(client, "pumice-certs", instance=election_settings.identity)
    keeper.injector.faults = ObjectFaults(registry, recorder)
    heartbeat = Heartbeat()
    tasks = [
        SupervisedTask("heartbeat", heartbeat.run),
        SupervisedTask("events", recorder.run),
        SupervisedTask("watch of webhook configurations", keeper.injector.run),
        SupervisedTask(
            "certificates", lambda: run_elected(client, election_settings, keeper.run, heartbeat)
        ),
    ]
    checks = {"caches": lambda: None if keeper.started.is_set() else "not synced yet"}
    async with serving_health(metrics_port, registry, checks, alive=heartbeat.problem):
        await run_until_stopped(tasks)
