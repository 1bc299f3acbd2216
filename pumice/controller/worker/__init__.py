"""The controller's process: it watches, asks `reconcile`, and writes.

`controller` is what all controllers share: a queue of keys, passes, and pauses. `jobs`, `queues` and the others are the
controllers, each with the caches that hold its observed state. `controllers` lists and runs them, `execution` carries plans out, and
`memory` avoids repeated work between passes. The result does not depend on any of this: the process can be killed at
any moment, and the next one continues from the state of the cluster.
"""

from pumice.controller.worker.controllers import ControllerWorker
from pumice.controller.worker.process import ControllerSettings

__all__ = [
    "ControllerSettings",
    "ControllerWorker",
]
