"""Jobs with a hostile pod: tolerations, affinity, labels."""

import json

from tests.fuzz.hostile_shapes import Maker, affinity, job, of_pod, requirements, task

PODS: dict[str, Maker] = {
    "tolerations": of_pod(
        "tolerations",
        lambda i: {
            "key": f"bad {i}",
            "operator": f"Exist{i}",
            "effect": f"NoSchedul{i}",
            "value": "b c",
        },
    ),
    "affinity": lambda n: job(task(pod={"affinity": affinity(n)})),
    "one long selector": lambda n: job(
        task(
            pod={
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "labelSelector": {"matchExpressions": requirements(n)},
                                "topologyKey": "zone",
                                "matchLabelKeys": [f"k{i}" for i in range(n)],
                                "mismatchLabelKeys": [f"k{i}" for i in range(n)],
                            }
                        ]
                    }
                }
            }
        )
    ),
    "values of a selector": lambda n: job(
        task(
            pod={
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "a", "operator": "In", "values": ["b c"] * n}
                                    ]
                                }
                            ]
                        }
                    }
                }
            }
        )
    ),
    "spread": of_pod(
        "topologySpreadConstraints",
        lambda i: {
            "maxSkew": 1,
            "topologyKey": f"k{i}",
            "whenUnsatisfiable": f"DoNotSchedul{i}",
            "matchLabelKeys": ["a"],
        },
    ),
    "spread twice": of_pod(
        "topologySpreadConstraints",
        lambda _: {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"},
    ),
    "node selector": lambda n: job(
        task(pod={"nodeSelector": {f"bad {i}": "b c" for i in range(n)}})
    ),
    "labels of a template": lambda n: job(
        task(
            template={
                "metadata": {"labels": {f"bad {i}": "b c" for i in range(n)}},
                "spec": {"containers": []},
            }
        )
    ),
    "annotations of a template": lambda n: job(
        task(
            template={
                "metadata": {
                    "annotations": {
                        f"container.apparmor.security.beta.kubernetes.io/c{i}": "x"
                        for i in range(n)
                    }
                },
                "spec": {"containers": []},
            }
        )
    ),
    "gates": of_pod("schedulingGates", lambda i: {"name": f"gate{i % 10}"}),
    "readiness gates": of_pod("readinessGates", lambda i: {"conditionType": f"bad {i}"}),
    "host aliases": of_pod("hostAliases", lambda i: {"ip": f"1.2.3.{i}", "hostnames": ["A_"] * 3}),
    "dns": lambda n: job(
        task(
            pod={
                "dnsConfig": {
                    "nameservers": ["1.1.1"] * n,
                    "searches": ["A_"] * n,
                    "options": [{}] * n,
                }
            }
        )
    ),
    "sysctls": lambda n: job(
        task(
            pod={
                "securityContext": {"sysctls": [{"name": f"a {i}", "value": "1"} for i in range(n)]}
            }
        )
    ),
    "groups": lambda n: job(task(pod={"securityContext": {"supplementalGroups": [-1] * n}})),
    "capabilities": lambda n: job(
        task(
            container={"securityContext": {"capabilities": {"add": [f"CAP{i}" for i in range(n)]}}}
        )
    ),
    "probe headers": lambda n: job(
        task(
            container={
                "livenessProbe": {
                    "httpGet": {
                        "port": "a b",
                        "httpHeaders": [{"name": f"bad {i}", "value": "x"} for i in range(n)],
                    }
                }
            }
        )
    ),
    "pull secrets": of_pod("imagePullSecrets", lambda i: {"name": f"A_{i}"}),
    "resource claims": of_pod("resourceClaims", lambda _: {"name": "c", "resourceClaimName": "A_"}),
    "deep": lambda n: job(
        task(pod={"affinity": json.loads('{"a":' * min(n, 400) + "1" + "}" * min(n, 400))})
    ),
}
"""Each for a number of items."""
