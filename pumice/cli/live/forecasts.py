"""Forecasts of a cluster, from what the user may read."""

import time
from collections.abc import Iterable

from pumice.api import keys
from pumice.api.kinds import JOB
from pumice.api.meta import Raw
from pumice.cli.files.checking import registry
from pumice.cli.live.observed import ReadableCluster
from pumice.cluster.client import Client
from pumice.cluster.errors import Forbidden
from pumice.scheduler import Config
from pumice.scheduler.results import CycleFailedError
from pumice.scheduler.simulate import UnreadableObjectError
from pumice.traces.forecasting import ForecastCluster, StartForecast

LIMIT = 1.5
"""Seconds of processor time for which a forecast looks ahead."""

NO_RIGHTS = (
    "no forecast: it needs nodes, and PodGroups and pods of all namespaces, which you may not read"
)


async def read_forecast_cluster(
    client: Client, seen: ReadableCluster, config: Config
) -> ForecastCluster:
    """The cluster with its Jobs; those of the namespace where the user may not read others."""
    jobs: list[Raw]
    try:
        jobs = (await client.list(JOB, None))["items"]
    except Forbidden:
        jobs = (await client.list(JOB, seen.namespace))["items"] if seen.namespace else []
    names = {pod.spec.scheduler_name for pod in seen.objects.pods if pod.group}
    schedulers = tuple(sorted(names | {keys.DEFAULT_SCHEDULER}))
    return ForecastCluster(seen.objects, jobs, config, registry(), time.time(), schedulers)


async def forecasts(
    client: Client, seen: ReadableCluster, config: Config, wanted: Iterable[str]
) -> tuple[dict[str, StartForecast], str]:
    """When Jobs start, by `namespace/name`, without those that do not wait; and what is ignored for that, for stderr."""
    wanted = list(wanted)
    if not seen.sees_cluster:
        return dict.fromkeys(wanted, StartForecast(None, NO_RIGHTS)), ""
    cluster = await read_forecast_cluster(client, seen, config)
    try:
        return cluster.forecasts(time.process_time, LIMIT, wanted), cluster.remark()
    except (UnreadableObjectError, CycleFailedError) as error:
        return dict.fromkeys(wanted, StartForecast(None, f"no forecast: {error}")), ""
