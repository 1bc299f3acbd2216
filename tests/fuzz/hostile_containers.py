"""Jobs with a hostile container: variables, ports, mounts."""

from tests.fuzz.hostile_shapes import Maker, job, long_name, of_container, of_pod, task, volumes

CONTAINERS: dict[str, Maker] = {
    "containers of one name": of_pod("containers", lambda _: {"name": "a", "image": "i"}),
    "containers": of_pod("containers", lambda i: {"name": f"a{i}", "image": "i"}),
    "init containers": of_pod("initContainers", lambda i: {"name": f"a{i}", "image": "I"}),
    "containers with everything": of_pod(
        "containers",
        lambda i: {
            "name": f"a{i}",
            "image": "i",
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "volumeMounts": [{"name": "v", "mountPath": "/a"}],
            "volumeDevices": [{"name": "v", "devicePath": "/a"}],
            "resources": {"claims": [{"name": "c"}], "limits": {"cpu": 1}},
            "env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cp"}}}],
        },
    ),
    "variables of one name": of_container("env", lambda _: {"name": "A", "value": "x"}),
    "bad variables": of_container("env", lambda i: {"name": f"A-{i}=", "value": "x"}),
    "variables of nothing": of_container(
        "env", lambda i: {"name": f"A{i}", "valueFrom": {"secretRef": {}}}
    ),
    "variables of odd sources": of_container(
        "env", lambda i: {"name": f"A{i}", "valueFrom": {f"secretKeyReff{i}": {}}}
    ),
    "variables of fields": of_container(
        "env",
        lambda i: {"name": f"A{i}", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.nam{i}"}}},
    ),
    "variables of amounts": of_container(
        "env",
        lambda i: {
            "name": f"A{i}",
            "valueFrom": {"resourceFieldRef": {"resource": f"limits.cp{i}"}},
        },
    ),
    "variables of files": lambda n: job(
        task(
            container={
                "env": [
                    {
                        "name": f"A{i}",
                        "valueFrom": {
                            "fileKeyRef": {"key": "k", "path": "p", "volumeName": f"w{i}"}
                        },
                    }
                    for i in range(n)
                ]
            },
            pod={"volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(n)]},
        )
    ),
    "variables that refer": of_container(
        "env", lambda i: {"name": f"A{i}", "value": f"$(A{i + 1})"}
    ),
    "variables from everywhere": of_container(
        "envFrom", lambda i: {f"configMapReff{i}": {"name": "A_"}}
    ),
    "ports": of_container(
        "ports", lambda i: {"containerPort": i, "name": f"Bad_{i}", "protocol": f"TCPP{i}"}
    ),
    "ports of the node": of_container(
        "ports", lambda i: {"containerPort": 1 + i % 9, "hostPort": 1 + i % 9}
    ),
    "ports of one name": of_container(
        "ports", lambda i: {"containerPort": 1 + i % 60000, "name": "a"}
    ),
    "foreign fields": lambda n: job(task(container={f"envv{i}": 1 for i in range(n)})),
    "foreign fields of a pod": lambda n: job(task(pod={f"hostNetwrk{i}": 1 for i in range(n)})),
    "foreign long fields": lambda n: job(task(pod={f"{long_name(i)}": 1 for i in range(n)})),
    "mounts of nothing": of_container(
        "volumeMounts", lambda i: {"name": f"v{i}", "mountPath": f"/a{i}"}
    ),
    "mounts of other volumes": volumes(
        lambda _: {"emptyDir": {}}, lambda i: {"name": f"w{i}", "mountPath": f"/a{i}"}
    ),
    "mounts at one path": volumes(
        lambda _: {"emptyDir": {}}, lambda i: {"name": f"v{i}", "mountPath": "/a"}
    ),
    "mounts with modes": volumes(
        lambda _: {"emptyDir": {}},
        lambda i: {
            "name": f"v{i}",
            "mountPath": f"/{i}",
            "mountPropagation": f"Bidirectionl{i}",
            "recursiveReadOnly": "Enabld",
        },
    ),
    "devices of other volumes": lambda n: job(
        task(
            container={
                "volumeDevices": [{"name": f"w{i}", "devicePath": f"/a{i}"} for i in range(n)]
            },
            pod={"volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(n)]},
        )
    ),
}
"""Each for a number of items."""
