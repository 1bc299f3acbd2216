"""Hostile Jobs: tasks, policies, plugins, texts without end."""

from tests.fuzz.hostile_shapes import Maker, job, long_name, of_tasks, task

JOBS: dict[str, Maker] = {
    "tasks": of_tasks(lambda i: task(i)),
    "tasks with bad names": of_tasks(lambda i: task(i, name=f"Bad_{i}")),
    "tasks of one name": of_tasks(lambda _: task(0)),
    "tasks with long names": of_tasks(lambda i: task(i, name=long_name(i))),
    "tasks with foreign fields": of_tasks(lambda i: task(i, container={"envv": 1, "imagee": 2})),
    "tasks of texts": of_tasks(lambda i: task(i, replicas="x")),
    "templates of texts": of_tasks(lambda i: task(i, container={"ports": "x", "env": 3})),
    "tasks with unread amounts": of_tasks(
        lambda i: task(i, container={"resources": {"limits": {"cpu": "?", "cpuu": "1"}}})
    ),
    "tasks in a chain": of_tasks(lambda i: task(i, dependsOn={"name": [f"t{i + 1}"]})),
    "tasks in circles": of_tasks(lambda i: task(i, dependsOn={"name": [f"t{i ^ 1}"]})),
    "tasks in one circle": lambda n: job(
        *(task(i, dependsOn={"name": [f"t{(i + 1) % n}"]}) for i in range(n))
    ),
    "tasks after nobody": of_tasks(
        lambda i: task(i, dependsOn={"name": [f"x{i}-{k}" for k in range(20)]})
    ),
    "long tasks after nobody": of_tasks(
        lambda i: task(i, name=long_name(2 * i), dependsOn={"name": [long_name(2 * i + 1)]})
    ),
    "a task after all": lambda n: job(
        *(task(i) for i in range(n)),
        task(n, dependsOn={"name": [f"t{i}" for i in range(n)] * 2}),
    ),
    "tasks with bad iterations": of_tasks(lambda i: task(i, dependsOn={"iteration": f"anyy{i}"})),
    "tasks with bad topologies": of_tasks(
        lambda i: task(i, topologyPolicy=f"best-efort{i}", partitionPolicy={"totalPartitions": 0})
    ),
    "misspelt events": lambda n: job(
        policies=[{"event": f"PodFaild{i}", "action": f"RestartJb{i}"} for i in range(n)]
    ),
    "misspelt events of tasks": of_tasks(
        lambda i: task(i, policies=[{"event": f"PodFaild{i}", "action": "RestartTsk"}] * 5)
    ),
    "any event and all others": lambda n: job(
        policies=[{"event": "*", "action": "RestartJob"}]
        + [{"events": [f"e{i}"], "exitCode": 3} for i in range(n)]
    ),
    "one policy, many events": lambda n: job(
        policies=[{"events": [f"PodFailed{i}" for i in range(n)], "exitCode": 3}]
    ),
    "exit codes": lambda n: job(policies=[{"exitCode": i, "action": "x"} for i in range(n)]),
    "timeouts": lambda n: job(
        policies=[{"event": "PodPending", "timeout": f"{'1h' * 9}{i}"} for i in range(n)]
    ),
    "one long timeout": lambda n: job(
        policies=[{"event": "PodPending", "timeout": "1h" * n + "x", "action": "AbortJob"}]
    ),
    "misspelt plugins": lambda n: job(plugins={f"tensorflo{i}": [] for i in range(n)}),
    "misspelt arguments": lambda n: job(
        plugins={"tensorflow": [f"--workr{i}=x" for i in range(n)], "svc": []}
    ),
    "stray arguments": lambda n: job(plugins={"pytorch": ["x"] * n}),
    "roles of nobody": lambda n: job(
        *(task(i) for i in range(n)), plugins={"roles": [f"--roles=r{i}=tt{i}" for i in range(n)]}
    ),
    "one list of roles": lambda n: job(
        *(task(i) for i in range(n)),
        plugins={"roles": ["--roles=" + ",".join(f"r{i}:tt{i}" for i in range(n))]},
    ),
    "topology of nobody": lambda n: job(
        *(task(i) for i in range(n)),
        plugins={"task-topology": ["--affinity=" + ";".join(f"x{i},y{i}" for i in range(n))]},
    ),
    "variables of roles": lambda n: job(
        plugins={"roles": ["--roles=main=t0", *(f"--env=A{i}={{adress:main}}" for i in range(n))]}
    ),
    "wired tasks": lambda n: job(
        *(task(i, container={"env": [{"name": "TF_CONFIG", "value": "x"}]}) for i in range(n)),
        plugins={"tensorflow": [], "svc": [], "env": [], "ssh": [], "pytorch": [], "mpi": []},
    ),
    "all wired plugins": lambda n: job(
        *(task(i) for i in range(n)),
        plugins={
            **{
                name: [] for name in ("svc", "ssh", "env", "tensorflow", "mxnet", "ray", "hcclrank")
            },
            "pytorch": ["--master=t0"],
            "mpi": ["--master=t0", "--worker=t1"],
        },
    ),
    "job volumes": lambda n: job(
        volumes=[{"mountPath": f"/a/{i % 9}", "volumeClaimName": f"Bad_{i}"} for i in range(n)]
    ),
    "job volumes with claims": lambda n: job(
        volumes=[
            {"mountPath": f"/b{i}", "volumeClaim": {"accessModes": ["ReadWritOnce"] * 3}}
            for i in range(n)
        ]
    ),
    "labels": lambda n: job(metadata={"labels": {f"bad {i}": "b c" for i in range(n)}}),
    "annotations": lambda n: job(metadata={"annotations": {f"bad {i}": "b c" for i in range(n)}}),
    "a long name": lambda n: job(metadata={"name": "x" * n}),
    "a long generated name": lambda n: job(metadata={"name": "", "generateName": "x" * n}),
    "a long queue": lambda n: job(queue="q" * n),
    "a long task": lambda n: job(task(name="a-" * n)),
    "a long image": lambda n: job(task(container={"image": "a/" * n + ":" + "b" * n})),
    "a long image of digits": lambda n: job(
        task(container={"image": "a_" * n + "@sha256:" + "0" * n})
    ),
    "a long quantity": lambda n: job(
        task(container={"resources": {"limits": {"cpu": "1" * n, "memory": "0" * n + "e"}}})
    ),
    "a long resource": lambda n: job(
        task(container={"resources": {"limits": {"a." * n + "/x": 1}}})
    ),
    "a long variable": lambda n: job(
        task(container={"env": [{"name": "A" * n, "value": "$(" * n}], "args": ["$(A)" * n]})
    ),
    "a long path": lambda n: job(
        task(
            container={
                "volumeMounts": [
                    {
                        "name": "v",
                        "mountPath": "/a" * n,
                        "subPath": "../" * n,
                        "subPathExpr": "$(A" * n,
                    }
                ]
            }
        )
    ),
    "a long host": lambda n: job(
        task(
            pod={"hostname": "a." * n, "subdomain": "a-" * n, "dnsConfig": {"searches": ["a." * n]}}
        )
    ),
    "long addresses": lambda n: job(
        task(
            pod={
                "hostAliases": [{"ip": "::" * n}, {"ip": "1." * n}],
                "dnsConfig": {"nameservers": [":" * n]},
            }
        )
    ),
    "a long cel": lambda n: job(
        task(pod={"nodeSelector": {"a/" * n: "b" * n}, "priorityClassName": "a." * n})
    ),
    "long profiles": lambda n: job(
        task(
            pod={"securityContext": {"sysctls": [{"name": "kernel." * n, "value": "1"}]}},
            container={
                "securityContext": {
                    "seccompProfile": {"type": "Localhost", "localhostProfile": "a/" * n},
                    "windowsOptions": {"runAsUserName": "a\\b" * n},
                }
            },
        )
    ),
}
"""Each for a number of items."""
