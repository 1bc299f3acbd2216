"""`pumice controller`: the Job controller as a process."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.api.jobs import DEFAULT_MAX_PODS
from pumice.api.keys import DEFAULT_SCHEDULER
from pumice.cli import lean
from pumice.cli.exits import UserError
from pumice.cli.options import (
    ElectionOptions,
    Kubeconfig,
    Level,
    LogLevel,
    MetricsPort,
    Server,
    StallTimeout,
    namespace_option,
    read_seconds,
    scheduler_name_option,
    settings_option,
    whole_number,
)

if TYPE_CHECKING:
    from pumice.cluster.client import Client
    from pumice.controller.worker import ControllerWorker

EXAMPLES = (
    "pumice controller --kubeconfig ~/.kube/config --no-leader-elect",
    "pumice controller --metrics-port 8081",
    "pumice controller --controllers '*,-gc-controller'",
    "pumice controller --set wait-image=registry.example/busybox:1.36",
)


Namespace = Annotated[
    str | None,
    namespace_option("Watch only this namespace."),
]
Secrets = Annotated[
    bool,
    typer.Option(
        "--secrets/--no-secrets",
        help="Read and write Secrets. Without it Jobs with plugin ssh or mpi do not start.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        "--worker-threads",
        metavar="N",
        parser=whole_number(1),
        help="Number of objects of one namespace that a controller handles concurrently; four times as many in all.",
    ),
]
MaxPodsPerJob = Annotated[
    int,
    typer.Option(
        metavar="N",
        parser=whole_number(1),
        help="Pods that a Job may ask for, and an object of another controller whose pods plugins wire; "
        "nothing is made of one that asks for more.",
    ),
]
Controllers = Annotated[
    str,
    typer.Option(
        help="Controllers to run, separated by commas: NAME, -NAME to exclude one, * for all.",
    ),
]
SchedulerName = Annotated[
    list[str] | None,
    scheduler_name_option(
        "Schedulers whose pods get PodGroups if other controllers made them (volcano). Repeat it for several.",
    ),
]
Inherit = Annotated[
    bool,
    typer.Option(
        "--inherit-owner-annotations/--no-inherit-owner-annotations",
        help="Apply annotations of the pods' owners to these PodGroups, too.",
    ),
]
CheckJobs = Annotated[
    bool,
    typer.Option(
        "--check-jobs",
        help="Refuse new Jobs that break a rule of admission, for clusters without the webhook.",
    ),
]
PluginSettings = Annotated[
    list[str] | None,
    settings_option(
        "--set",
        "A setting of job plugins, for example wait-image=registry.example/busybox:1 or "
        "strict-upstream=true. Repeat it for several.",
    ),
]


def controller(
    context: typer.Context,
    kubeconfig: Kubeconfig = None,
    server: Server = None,
    namespace: Namespace = None,
    secrets: Secrets = True,
    controllers: Controllers = "*",
    workers: Workers = 8,
    scheduler_name: SchedulerName = None,
    inherit_owner_annotations: Inherit = True,
    max_pods_per_job: MaxPodsPerJob = DEFAULT_MAX_PODS,
    check_jobs: CheckJobs = False,
    *,
    election: ElectionOptions,
    stall_timeout: StallTimeout = "60s",
    metrics_port: MetricsPort = None,
    log_level: LogLevel = Level.INFO,
    settings: PluginSettings = None,
) -> None:
    """Run the controllers: Jobs become PodGroups and pods.

    Any number of these processes may run; one of them leads. HyperNodes are discovered as the ConfigMap
    HELM_RELEASE_NAME-controller-configmap in KUBE_POD_NAMESPACE says (volcano-controller-configmap in volcano-system
    without these variables).
    """
    with lean.importing_http():
        from pumice.cli.files.checking import job_check, read_plugin_settings, registry
        from pumice.cli.processes import components
        from pumice.cluster.clock import identity
        from pumice.controller.worker import ControllerSettings, ControllerWorker

    running = _selected(controllers)
    chosen = read_plugin_settings(settings, "--set")
    components.start_logs(log_level, context.args)
    plugins = registry()
    lease_times = components.read_lease_times(election)
    stall_seconds = read_seconds("--stall-timeout", stall_timeout)

    def make(client: "Client") -> "ControllerWorker":
        process = ControllerSettings(
            controllers=running,
            workers=workers,
            namespace=namespace,
            secrets=secrets,
            leader_elect=election.leader_elect,
            lease_namespace=election.lease_namespace or client.connection.namespace,
            lease_times=lease_times,
            stall_seconds=stall_seconds,
            identity=identity(),
            plugins=chosen,
            check=job_check() if check_jobs else None,
            scheduler_names=tuple(scheduler_name or (DEFAULT_SCHEDULER,)),
            inherit_owner_annotations=inherit_owner_annotations,
            discovery=discovery_of(os.environ),
            max_pods_per_job=max_pods_per_job,
        )
        return ControllerWorker(client, plugins, process)

    components.run_worker(kubeconfig, server, metrics_port, make)


def _selected(controllers: str) -> frozenset[str]:
    from pumice.controller.worker.process import SelectionError, selected

    try:
        return selected(each.strip() for each in controllers.split(","))
    except SelectionError as error:
        raise UserError(f"--controllers: {error}") from None


def discovery_of(environment: Mapping[str, str]) -> tuple[str, str]:
    """Parse the namespace and name of the ConfigMap for HyperNode discovery, in the form of Volcano's chart."""
    release = environment.get("HELM_RELEASE_NAME") or "volcano"
    namespace = environment.get("KUBE_POD_NAMESPACE") or "volcano-system"
    return namespace, f"{release}-controller-configmap"
