"""The controllers of the process: the watches and the work of each, by name."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pumice.controller.loop.caches import ControllerCaches
from pumice.controller.loop.cronjobs import CronJobCaches, CronJobTerm, local_time_zone
from pumice.controller.loop.hypernodes import HyperNodeCaches, HyperNodeTerm
from pumice.controller.loop.job_owners import JobOwners
from pumice.controller.loop.jobflows import FlowCaches, JobFlowTerm, JobTemplateTerm
from pumice.controller.loop.native import NativeCaches, NativeTerm
from pumice.controller.loop.process import ControllerProcess
from pumice.controller.loop.queues import QueueCaches, QueueTerm
from pumice.controller.loop.settings import ControllerSettings
from pumice.controller.loop.term import JobTerm
from pumice.controller.loop.watches import Watches
from pumice.controller.loop.workloads import WorkloadCaches, WorkloadTerm
from pumice.plugins import Registry

__all__ = ["MAKERS", "Maker", "Work"]

Work = Callable[[ControllerProcess], Coroutine[Any, Any, None]]
"""What a controller does from the moment its process leads until it is cancelled."""

Maker = Callable[[Watches, ControllerSettings, Registry], Work | None]
"""Creates the watches of a controller when the process starts; None if the controller has no work in a process for one namespace."""


def _jobs(watches: Watches, _: ControllerSettings, registry: Registry) -> Work:
    caches = ControllerCaches(watches)
    owners = JobOwners(watches)
    return lambda worker: JobTerm(worker, registry, caches, owners).run()


def _wiring(watches: Watches, _: ControllerSettings, registry: Registry) -> Work:
    caches = NativeCaches(watches)
    return lambda worker: NativeTerm(worker, registry, caches).run()


def _queues(watches: Watches, *_: object) -> Work:
    caches = QueueCaches(watches)
    return lambda worker: QueueTerm(worker, caches).run()


def _pod_groups(watches: Watches, settings: ControllerSettings, registry: Registry) -> Work:
    del registry
    caches = WorkloadCaches(watches, settings.scheduler_names)
    return lambda worker: WorkloadTerm(worker, caches).run()


def _hyper_nodes(watches: Watches, settings: ControllerSettings, _: Registry) -> Work | None:
    if settings.namespace is not None:
        return None  # HyperNodes are in no namespace
    caches = HyperNodeCaches(watches, settings.discovery)
    return lambda worker: HyperNodeTerm(worker, caches).run()


def _cron_jobs(watches: Watches, *_: object) -> Work:
    caches = CronJobCaches(watches)
    return lambda worker: CronJobTerm(worker, caches, local_time_zone()).run()


def _job_flows(watches: Watches, *_: object) -> Work:
    caches = FlowCaches(watches)
    return lambda worker: JobFlowTerm(worker, caches).run()


def _job_templates(watches: Watches, *_: object) -> Work:
    caches = FlowCaches(watches)
    return lambda worker: JobTemplateTerm(worker, caches).run()


MAKERS: Mapping[str, Maker] = {
    "job-controller": _jobs,
    "cronjob-controller": _cron_jobs,
    "queue-controller": _queues,
    "pg-controller": _pod_groups,
    "hyperNode-controller": _hyper_nodes,
    "jobflow-controller": _job_flows,
    "jobtemplate-controller": _job_templates,
    "wiring-controller": _wiring,
}
"""Controllers by their name in `--controllers`; `gc-controller` is a part of the first."""
