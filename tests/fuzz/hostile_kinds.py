"""Hostile objects of other kinds, each with its endpoint."""

from tests.fuzz.hostile_containers import CONTAINERS
from tests.fuzz.hostile_shapes import (
    Maker,
    a_queue,
    amounts,
    cron_job,
    hyper_node,
    job,
    job_flow,
    job_template,
    long_name,
    near,
    pod,
    pod_group,
    task,
)

OTHERS: dict[str, tuple[str, Maker]] = {
    "queue of resources": ("/queues/validate", lambda n: a_queue(capability=amounts(n), deserved=amounts(n))),
    "queue of guarantees": ("/queues/validate", lambda n: a_queue(parent="research", guarantee={"resource": amounts(n)})),
    "queue of unread amounts": ("/queues/validate", lambda n: a_queue(capability=amounts(n, "1 cpu"))),
    "queue of long amounts": ("/queues/validate", lambda n: a_queue(capability={"cpu": "9" * n})),
    "queue of clusters": (
        "/queues/validate",
        lambda n: a_queue(extendClusters=[{"name": f"c{i % 100}", "weight": -1, "capacity": amounts(2)} for i in range(n)]),
    ),
    "queue of node groups": (
        "/queues/validate",
        lambda n: a_queue(
            affinity={
                side: {
                    "requiredDuringSchedulingIgnoredDuringExecution": [f"g{i}" for i in range(n)] * 2,
                    "preferredDuringSchedulingIgnoredDuringExecution": [f"g{i}" for i in range(n)],
                }
                for side in ("nodeGroupAffinity", "nodeGroupAntiAffinity")
            }
        ),
    ),
    "queue with a path": (
        "/queues/validate",
        lambda n: a_queue()
        | {
            "metadata": {
                "name": "hostile",
                "annotations": {"volcano.sh/hierarchy": "a/" * n, "volcano.sh/hierarchy-weights": "1/" * n},
            }
        },
    ),
    "queue of texts": ("/queues/validate", lambda n: a_queue(extendClusters=[{"weight": "x"} for _ in range(n)])),
    "queue mutated": ("/queues/mutate", lambda n: a_queue(extendClusters=[{"name": f"c{i}"} for i in range(n)])),
    "pod group of tasks": ("/podgroups/validate", lambda n: pod_group(minTaskMember={f"Bad_{i}": -1 for i in range(n)})),
    "pod group of resources": ("/podgroups/validate", lambda n: pod_group(minResources=amounts(n))),
    "pod group of groups": (
        "/podgroups/validate",
        lambda n: pod_group(
            subGroupPolicy=[
                {
                    "name": f"p{i % 100}", "subGroupSize": 0, "matchLabelKeys": ["bad key", "a", "a"],
                    "labelSelector": {"matchExpressions": [{"key": "a b", "operator": f"Inn{i}"}]},
                }
                for i in range(n)
            ]
        ),
    ),
    "pod group of keys": (
        "/podgroups/validate",
        lambda n: pod_group(subGroupPolicy=[{"name": "p", "matchLabelKeys": [f"k{i}" for i in range(n)] * 2}]),
    ),
    "pod group mutated": ("/podgroups/mutate", lambda n: pod_group(minTaskMember={f"t{i}": 1 for i in range(n)})),
    "pod of containers": ("/pods/validate", lambda n: pod(containers=[{"name": f"c{i}", "image": "i"} for i in range(n)])),
    "pod of gates": ("/pods/validate", lambda n: pod(schedulingGates=[{"name": f"g{i}"} for i in range(n)])),
    "pod mutated": ("/pods/mutate", lambda n: pod(containers=[{"name": f"c{i}", "image": "i"} for i in range(n)])),
    "flows": ("/jobflows/validate", lambda n: job_flow([{"name": f"f{i}"} for i in range(n)])),
    "flows of one name": ("/jobflows/validate", lambda n: job_flow([{"name": "f"} for _ in range(n)])),
    "flows in a chain": (
        "/jobflows/validate",
        lambda n: job_flow([{"name": f"f{i}", "dependsOn": {"targets": [f"f{i + 1}"]}} for i in range(n)]),
    ),
    "flows after nobody": (
        "/jobflows/validate",
        lambda n: job_flow([{"name": f"f{i}", "dependsOn": {"targets": [f"ff{i}"]}} for i in range(n)]),
    ),
    "long flows after nobody": (
        "/jobflows/validate",
        lambda n: job_flow([{"name": long_name(2 * i), "dependsOn": {"targets": [long_name(2 * i + 1)]}} for i in range(n)]),
    ),
    "flows with probes": (
        "/jobflows/validate",
        lambda n: job_flow(
            [
                {"name": f"f{i}", "dependsOn": {"targets": ["f0"], "probe": {"httpGetList": [{"port": -1}], "taskStatusList": [{}]}}}
                for i in range(n)
            ]
        ),
    ),
    "flows with patches": (
        "/jobflows/validate",
        lambda n: job_flow([{"name": f"f{i}", "patch": {"jobSpec": job(task())["spec"]}} for i in range(n)]),
    ),
    "flows with misspelt patches": (
        "/jobflows/validate",
        lambda n: job_flow(
            [
                {"name": f"f{i}", "patch": {"jobSpec": {"policies": [{"event": f"PodFaild{i}", "action": "RestartJb"}]}}}
                for i in range(n)
            ]
        ),
    ),
    "flow of tasks": (
        "/jobflows/validate",
        lambda n: job_flow(
            [{"name": "f", "patch": {"jobSpec": {"tasks": [task(i, container={"env": [{"name": "A="}]}) for i in range(n)]}}}]
        ),
    ),
    "cron job of tasks": (
        "/cronjobs/validate",
        lambda n: cron_job(job(*(task(i, name=f"Bad_{i}", dependsOn={"name": [f"y{i}"]}) for i in range(n)))),
    ),
    "cron job of mounts": (
        "/cronjobs/validate", lambda n: cron_job(CONTAINERS["mounts of other volumes"](n)),
    ),
    "long schedule": ("/cronjobs/validate", lambda n: cron_job(job(), schedule=",".join(["1-59/2"] * n) + " * * * *")),
    "schedule of commas": ("/cronjobs/validate", lambda n: cron_job(job(), schedule="," * n + " * * * *")),
    "schedule of numbers": (
        "/cronjobs/validate", lambda n: cron_job(job(), schedule=",".join(map(str, range(n))) + " * * * *"),
    ),
    "long bad schedule": ("/cronjobs/validate", lambda n: cron_job(job(), schedule="* " * n)),
    "long schedule of digits": ("/cronjobs/validate", lambda n: cron_job(job(), schedule="1" * n + " * * * *")),
    "long interval": ("/cronjobs/validate", lambda n: cron_job(job(), schedule="@every " + "1h" * n + "x")),
    "long time zone": ("/cronjobs/validate", lambda n: cron_job(job(), timeZone="Europe/" * n)),
    "job template of tasks": (
        "/jobtemplates/validate",
        lambda n: job_template(job(*(task(i, name=f"Bad_{i}", dependsOn={"name": [f"y{i}"]}) for i in range(n)))),
    ),
    "members by patterns": ("/hypernodes/validate", lambda n: hyper_node(near(n, lambda i: f"(a+)+${i}"))),
    "members by bad patterns": ("/hypernodes/validate", lambda n: hyper_node(near(n, lambda i: f"(a+{i}"))),
    "members by large patterns": ("/hypernodes/validate", lambda n: hyper_node(near(n, lambda i: f"(x{{1,30}}){{1,{1 + i % 30}}}"))),
    "members by patterns of classes": ("/hypernodes/validate", lambda n: hyper_node(near(n, lambda i: rf"{i}\pL{{400}}"))),
    "one long pattern": ("/hypernodes/validate", lambda n: hyper_node(near(1, lambda _: "(a+)+" * n))),
    "one deep pattern": ("/hypernodes/validate", lambda n: hyper_node(near(1, lambda _: "(" * n + "a" + ")" * n))),
    "one pattern of classes": ("/hypernodes/validate", lambda n: hyper_node(near(1, lambda _: "[" + "a-z" * n + "]"))),
    "one repeated pattern": ("/hypernodes/validate", lambda n: hyper_node(near(1, lambda _: "((a{1,99}){1,99}){1,99}" * n))),
    "members by name": (
        "/hypernodes/validate",
        lambda n: hyper_node([{"type": f"Nod{i}", "selector": {"exactMatch": {"name": f"Bad_{i % 100}"}}} for i in range(n)]),
    ),
    "members by labels": (
        "/hypernodes/validate",
        lambda n: hyper_node(
            [
                {"type": "Node", "selector": {"labelMatch": {"matchExpressions": [{"key": f"a b{i}", "operator": f"Inn{i}"}]}}}
                for i in range(n)
            ]
        ),
    ),
}  # fmt: skip
"""Other kinds, each with its endpoint."""
