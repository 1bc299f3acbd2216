"""Jobs with hostile volumes and resources."""

from tests.fuzz.hostile_shapes import Maker, amounts, job, of_container, of_pod, task

VOLUMES: dict[str, Maker] = {
    "volumes of nothing": of_pod("volumes", lambda i: {"name": f"v{i}"}),
    "volumes of one name": of_pod("volumes", lambda _: {"name": "v", "emptyDir": {}}),
    "volumes of odd sources": of_pod("volumes", lambda i: {"name": f"v{i}", f"emptyDirr{i}": {}}),
    "volumes of all sources": of_pod(
        "volumes",
        lambda i: {
            "name": f"v{i}",
            "emptyDir": {"medium": "Memry"},
            "hostPath": {"path": "../a", "type": "Fil"},
            "secret": {},
            "configMap": {"name": "A_", "items": [{"key": "a", "path": "../b"}]},
        },
    ),
    "projected volumes": of_pod(
        "volumes",
        lambda i: {
            "name": f"v{i}",
            "projected": {
                "sources": [
                    {"secret": {"name": "a", "items": [{"key": "k", "path": "p"}]}},
                    {"secrett": {}},
                ]
            },
        },
    ),
    "one projected volume": lambda n: job(
        task(
            pod={
                "volumes": [
                    {
                        "name": "v",
                        "projected": {
                            "sources": [
                                {
                                    "secret": {
                                        "name": "a",
                                        "items": [{"key": "k", "path": f"p{i % 5}"}],
                                    }
                                }
                                for i in range(n)
                            ]
                        },
                    }
                ]
            }
        )
    ),
    "claim templates": of_pod(
        "volumes",
        lambda i: {
            "name": f"v{i}",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWritOnce"], "volumeMode": f"Blck{i}"}
                }
            },
        },
    ),
    "claims of nothing": lambda n: job(
        task(
            container={"resources": {"claims": [{"name": f"d{i}"} for i in range(n)]}},
            pod={"resourceClaims": [{"name": f"c{i}", "resourceClaimName": "x"} for i in range(n)]},
        )
    ),
    "claims in parts": lambda n: job(
        task(
            container={
                "resources": {
                    "claims": [{"name": "c", "request": f"r{i}"} for i in range(n)]
                    + [{"name": "d"}] * n
                }
            },
            pod={"resourceClaims": [{"name": "c", "resourceClaimName": "x"}]},
        )
    ),
    "misspelt resources": lambda n: job(
        task(container={"resources": {"limits": amounts(n), "requests": amounts(n)}})
    ),
    "misspelt devices": lambda n: job(
        task(container={"resources": {"limits": {f"nvdia.com/gpu{i}": "1" for i in range(n)}}})
    ),
    "unread amounts": lambda n: job(task(container={"resources": {"limits": amounts(n, "1 cpu")}})),
    "unread amounts and bad variables": lambda n: job(
        task(
            container={
                "resources": {"limits": amounts(n, "1 cpu")},
                "env": [{"name": f"A-{i}=", "value": "x"} for i in range(n)],
            }
        )
    ),
    "huge pages": lambda n: job(
        task(container={"resources": {"limits": {f"hugepages-{i}Mi": f"{i}Ki" for i in range(n)}}})
    ),
    "resources of the pod": lambda n: job(
        task(pod={"resources": {"limits": amounts(n)}, "overhead": amounts(n)})
    ),
    "resize policies": of_container(
        "resizePolicy", lambda i: {"resourceName": f"cpuu{i}", "restartPolicy": "NotRequird"}
    ),
}
"""Each for a number of items."""
