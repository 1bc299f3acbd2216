"""A Kubernetes API server inside this process, for `pumice dev` and for tests.

In memory and on loopback, yet enough of Kubernetes that kubectl and the official client
work against it unchanged. The contract suite (`tests/contract`) holds it to what the real
kube-apiserver does.

A request goes from `server` (HTTP) through `targets` and `media` (what is meant, in which form) to
`handlers`, which call `objects`, `deletion`, `patches` or `apply`; these ask the kind's strategy and
`admission`, and write to `storage`. From there `watching` and `gc` take what has changed.

What a real cluster has and this has not: users and their rights, CEL rules in CRDs, conversion between
versions of a CRD, match conditions and failure policies of webhooks, quotas, disruption budgets, and
the controllers of Deployments, Jobs, service accounts and the like. Whose objects those are can be
written and read all the same.
"""

from pumice.embedded.admission import EmbeddedAdmission, EndpointRegistration
from pumice.embedded.cluster import EmbeddedCluster, Security
from pumice.embedded.nodes import NodeTimings
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.store import Store

__all__ = [
    "ApiStatusError",
    "EmbeddedAdmission",
    "EmbeddedCluster",
    "EndpointRegistration",
    "NodeTimings",
    "Security",
    "Store",
]
