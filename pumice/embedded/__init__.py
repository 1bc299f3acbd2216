"""A Kubernetes API server inside this process, for `pumice dev` and for tests.

It runs in memory and on loopback. kubectl and the official client work with it unchanged. The contract suite
(`tests/contract`) compares it with the real kube-apiserver.

A request goes from `server` (HTTP) through `targets` (path) and `media` (format) to `handlers`, which call `objects`,
`deletion`, `patches` or `apply`; these use the kind's strategy and `admission`, and write to `storage`. `watching` and
`gc` read changes from there.

It lacks these parts of a real cluster: users and their rights, CEL rules in CRDs, conversion between versions of a CRD,
match conditions and failure policies of webhooks, quotas, disruption budgets, and the controllers of Deployments, Jobs,
service accounts and the like. Objects of these kinds can still be written and read.
"""

from pumice.embedded.cluster import EmbeddedCluster, Security
from pumice.embedded.nodes import NodeTimings
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.store import Store

__all__ = [
    "ApiStatusError",
    "EmbeddedCluster",
    "NodeTimings",
    "Security",
    "Store",
]
