"""The controller's process: it watches, asks `reconcile`, and writes.

`caches` are the picture of the cluster, `worker` turns news into passes, `execution` carries plans out,
`memory` holds what saves work between two passes. Nothing of it matters to the result: the process can
be killed at any moment, and the next one goes on from what is in the cluster.
"""

from pumice.controller.loop.caches import OBJECT_KINDS
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.loop.settings import ControllerSettings
from pumice.controller.loop.worker import ControllerWorker

__all__ = [
    "OBJECT_KINDS",
    "ControllerMetrics",
    "ControllerSettings",
    "ControllerWorker",
]
