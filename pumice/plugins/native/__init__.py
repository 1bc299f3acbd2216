"""Job plugins on the pods of other controllers: Indexed Jobs, JobSets, LeaderWorkerSets.

An annotation on the pod template names the plugins. `owners` reads the objects that have such
templates, `units` makes the Jobs that plugins know of each, `places` finds out which pod of them a pod is,
and `wiring` does to it what the controller does to its own.
"""

from pumice.plugins.native.owners import OWNERS, Owner, OwnerKey
from pumice.plugins.native.places import Place, place
from pumice.plugins.native.request import RequestError
from pumice.plugins.native.units import Unit
from pumice.plugins.native.wiring import NativeWirings, Wired, is_wired

__all__ = [
    "OWNERS",
    "NativeWirings",
    "Owner",
    "OwnerKey",
    "Place",
    "RequestError",
    "Unit",
    "Wired",
    "is_wired",
    "place",
]
