"""The controller's process: it watches, asks `reconcile`, and writes.

`caches` hold the observed state, `worker` starts passes when it changes, `execution` carries plans out, and `memory`
avoids repeated work between passes. The result does not depend on any of this: the process can be killed at any moment,
and the next one continues from the state of the cluster.
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
