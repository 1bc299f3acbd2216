"""`pumice scheduler`: the scheduler as a process."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    config_option,
    output_option,
    read_seconds,
    scheduler_name_option,
)
from pumice.cli.output import Format

if TYPE_CHECKING:
    from pumice.cluster.client import Client
    from pumice.scheduler.worker import SchedulerWorker

EXAMPLES = (
    "pumice scheduler --kubeconfig ~/.kube/config --no-leader-elect",
    "pumice scheduler --config volcano-scheduler.conf --metrics-port 8080",
    "pumice scheduler --config volcano-scheduler.conf --check-config",
)


_ConfigOption = Annotated[
    Path | None,
    config_option(
        "Configuration in Volcano's format; Pumice's defaults otherwise.", "--scheduler-conf"
    ),
]
_CheckConfigOption = Annotated[
    bool,
    typer.Option("--check-config", help="Check the configuration, then exit."),
]
_OutputOption = Annotated[Format, output_option("Form of the result of --check-config.")]
_SchedulerNameOption = Annotated[
    list[str] | None,
    scheduler_name_option("Schedulers whose pods are placed (volcano). Repeat it for several."),
]
_DefaultQueueOption = Annotated[
    str, typer.Option("--default-queue", help="Queue of PodGroups that name none.")
]
_FeatureGatesOption = Annotated[
    str,
    typer.Option(
        "--feature-gates",
        metavar="NAME=true,…",
        help="Volcano's feature gates; SchedulingGatesQueueAdmission removes the gate of pods that wait for room in their queue.",
    ),
]
_PeriodOption = Annotated[
    str, typer.Option("--schedule-period", help="Longest time between two cycles.")
]
_BudgetOption = Annotated[
    str,
    typer.Option(
        "--cycle-budget",
        help="Processor time of a cycle, after which it leaves gangs to the next one.",
    ),
]


def scheduler(
    context: typer.Context,
    kubeconfig: Kubeconfig = None,
    server: Server = None,
    config: _ConfigOption = None,
    check_config: _CheckConfigOption = False,
    output: _OutputOption = Format.TEXT,
    scheduler_name: _SchedulerNameOption = None,
    default_queue: _DefaultQueueOption = "default",
    feature_gates: _FeatureGatesOption = "",
    period: _PeriodOption = "1s",
    cycle_budget: _BudgetOption = "1s",
    *,
    election: ElectionOptions,
    stall_timeout: StallTimeout = "60s",
    metrics_port: MetricsPort = None,
    log_level: LogLevel = Level.INFO,
) -> None:
    """Run the scheduler: pods of PodGroups get nodes.

    A cycle runs after a change, and at the latest after the period. Any number of these processes may run; one of them
    leads. A changed configuration file is read again; if it is invalid, the previous configuration stays in effect.
    """
    with lean.importing_http():
        from pumice.cli.files.configuration import config_text, read_config, report_config
        from pumice.cli.processes import components
        from pumice.cli.processes.volcano_flags import is_on
        from pumice.cluster.clock import identity
        from pumice.scheduler.worker import SchedulerWorker, WorkerSettings

    if check_config:
        raise typer.Exit(report_config(config, output))
    components.start_logs(log_level, context.args)
    opens_gates, unknown = is_on(feature_gates, "SchedulingGatesQueueAdmission")
    components.report_ignored(unknown)
    text = config_text(config)
    scheduling = read_config(config, text)
    seconds = read_seconds("--schedule-period", period)
    budget = read_seconds("--cycle-budget", cycle_budget)
    lease_times = components.read_lease_times(election)
    stall_seconds = _read_stall(stall_timeout, budget)

    def make(client: "Client") -> "SchedulerWorker":
        settings = WorkerSettings(
            scheduler_names=tuple(scheduler_name or ("volcano",)),
            default_queue=default_queue,
            opens_gates=opens_gates,
            period=seconds,
            cycle_budget=budget,
            leader_elect=election.leader_elect,
            lease_namespace=election.lease_namespace or client.connection.namespace,
            lease_times=lease_times,
            stall_seconds=stall_seconds,
            identity=identity(),
        )
        return SchedulerWorker(
            client, scheduling, settings, config_file=config, config_text=(text or "").encode()
        )

    components.run_worker(kubeconfig, server, metrics_port, make)


def _read_stall(text: str, budget: float) -> float:
    """Read after how many seconds the process counts as hung.

    Raises:
        UserError: The text is not a duration, or a cycle that keeps its budget in seconds could take as long.
    """
    from pumice.scheduler.budget import GANG_LIMIT

    stall_seconds = read_seconds("--stall-timeout", text)
    least = (1 + GANG_LIMIT) * budget
    if stall_seconds <= least:
        raise UserError(
            f"--stall-timeout: must be more than {least:g} s, which a cycle with --cycle-budget {budget:g}s may take, found {stall_seconds:g} s"
        )
    return stall_seconds
