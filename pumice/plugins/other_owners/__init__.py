"""Job plugins on the pods of other controllers: Indexed Jobs, JobSets, LeaderWorkerSets.

An annotation on the pod template names the plugins. `owners` reads the objects with such templates, `wired_pods`
converts each to Jobs for plugins, `places` finds the position of a pod in them, and `wiring` applies the plugins to the pod.
"""

from pumice.plugins.other_owners.owners import OWNERS, Owner, OwnerKey
from pumice.plugins.other_owners.places import PodPlace, place
from pumice.plugins.other_owners.request import RequestError
from pumice.plugins.other_owners.wiring import OwnerWirings, Wired, is_wired

__all__ = [
    "OWNERS",
    "Owner",
    "OwnerKey",
    "OwnerWirings",
    "PodPlace",
    "RequestError",
    "Wired",
    "is_wired",
    "place",
]
