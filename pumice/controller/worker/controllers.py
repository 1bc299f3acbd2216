"""The process's tasks: watches, events, and the controllers while this process leads, with the watches and the work of each."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pumice.cluster.client import Client
from pumice.cluster.connection import ConfigurationError
from pumice.cluster.lifecycle import SupervisedTask
from pumice.controller.worker.caches import JobCaches
from pumice.controller.worker.cronjobs import CronJobCaches, CronJobController, local_time_zone
from pumice.controller.worker.hypernodes import HyperNodeCaches, HyperNodeController
from pumice.controller.worker.jobflows import FlowCaches, JobFlowController, JobTemplateController
from pumice.controller.worker.jobs import JobController, JobOwners
from pumice.controller.worker.podgroups import PodGroupCaches, PodGroupController
from pumice.controller.worker.process import ControllerProcess, ControllerSettings, Watches
from pumice.controller.worker.queues import QueueCaches, QueueController
from pumice.controller.worker.wiring import WiringCaches, WiringController
from pumice.plugins import Registry

Work = Callable[[ControllerProcess], Coroutine[Any, Any, None]]
"""What a controller does from the moment its process leads until it is cancelled."""


Maker = Callable[[Watches, ControllerSettings, Registry], Work | None]
"""Creates the watches of a controller when the process starts; None if the controller has no work in a process for one namespace."""


def _jobs(watches: Watches, _: ControllerSettings, registry: Registry) -> Work:
    caches = JobCaches(watches)
    owners = JobOwners(watches)
    return lambda worker: JobController(worker, registry, caches, owners).run()


def _wiring(watches: Watches, _: ControllerSettings, registry: Registry) -> Work:
    caches = WiringCaches(watches)
    return lambda worker: WiringController(worker, registry, caches).run()


def _queues(watches: Watches, *_: object) -> Work:
    caches = QueueCaches(watches)
    return lambda worker: QueueController(worker, caches).run()


def _pod_groups(watches: Watches, settings: ControllerSettings, registry: Registry) -> Work:
    del registry
    caches = PodGroupCaches(watches, settings.scheduler_names)
    return lambda worker: PodGroupController(worker, caches).run()


def _hyper_nodes(watches: Watches, settings: ControllerSettings, _: Registry) -> Work | None:
    if settings.namespace is not None:
        return None  # HyperNodes are in no namespace
    caches = HyperNodeCaches(watches, settings.discovery)
    return lambda worker: HyperNodeController(worker, caches).run()


def _cron_jobs(watches: Watches, *_: object) -> Work:
    caches = CronJobCaches(watches)
    return lambda worker: CronJobController(worker, caches, local_time_zone()).run()


def _job_flows(watches: Watches, *_: object) -> Work:
    caches = FlowCaches(watches)
    return lambda worker: JobFlowController(worker, caches).run()


def _job_templates(watches: Watches, *_: object) -> Work:
    caches = FlowCaches(watches)
    return lambda worker: JobTemplateController(worker, caches).run()


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


class ControllerWorker(ControllerProcess):
    """The controllers of one process.

    Attributes:
        watches: Their watches.
    """

    component = "pumice-controller"

    def __init__(
        self,
        client: Client,
        registry: Registry,
        settings: ControllerSettings | None = None,
    ) -> None:
        """Create a worker; its `tasks` must run.

        Raises:
            ConfigurationError: None of the controllers works for one namespace alone.
        """
        settings = settings or ControllerSettings()
        self.watches = Watches(client, namespace=settings.namespace)
        self._works = {
            name: work
            for name, make in MAKERS.items()
            if name in settings.controllers
            and (work := make(self.watches, settings, registry)) is not None
        }
        if not self._works:
            names = ", ".join(sorted(settings.controllers))
            raise ConfigurationError(
                f"{names}: works for the whole cluster only, not for a namespace"
            )
        super().__init__(client, settings, self.watches.required)
        for each in self.watches.optional:
            each.faults = self.faults

    def tasks(self) -> tuple[SupervisedTask, ...]:
        """All tasks that must run, for `run_until_stopped`."""
        optional = (
            SupervisedTask(f"watch of {each.kind.resource}", each.run)
            for each in self.watches.optional
        )
        return (*optional, *super().tasks())

    async def work(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, work in self._works.items():
                group.create_task(work(self), name=name)
