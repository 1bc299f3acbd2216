"""Job plugins on the pods of other controllers: Indexed Jobs, JobSets, LeaderWorkerSets.

An annotation on the pod template names the plugins. `owners` reads the objects with such templates, `units` converts
each to Jobs for plugins, `places` finds the position of a pod in them, and `wiring` applies the plugins to the pod.
"""

from pumice.plugins.native.owners import OWNERS, Owner, OwnerKey
from pumice.plugins.native.places import NativePlace, place
from pumice.plugins.native.request import RequestError
from pumice.plugins.native.units import WiredPods
from pumice.plugins.native.wiring import NativeWirings, Wired, is_wired

__all__ = [
    "OWNERS",
    "NativePlace",
    "NativeWirings",
    "Owner",
    "OwnerKey",
    "RequestError",
    "Wired",
    "WiredPods",
    "is_wired",
    "place",
]
