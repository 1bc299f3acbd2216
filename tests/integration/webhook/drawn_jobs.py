"""Jobs drawn at the limits of names and sizes, with plugins, and with templates that have what plugins add."""

from random import Random
from typing import Any

from pumice.plugins import builtin
from tests.kit import builders

Raw = dict[str, Any]

TASKS = ("master", "worker", "head", "ps", "scheduler", "server", "0", "w-1")
NEEDED = {"mpi": "master", "ray": "head", "mxnet": "scheduler"}
WORDS = {
    "svc": ("--publish-not-ready-addresses=maybe", "--disable-network-policy", "junk"),
    "ssh": ("--ssh-key-file-path=a/../b", "--ssh-key-file-path=/data", "--ssh-key-secret=s", "--x"),
    "tensorflow": ("--ps=w-1", "--port=abc", "--port=2200"),
    "pytorch": ("--wait-master-enabled", "--wait-master-image= x", "--elastic=1:4", "--port=0x16"),
    "mpi": ("--wait-workers-enabled", "--slots-per-worker=x", "--port=2200"),
    "ray": ("--wait-head-enabled", "--clients=cluster", "--clientPort=70000", "--headContainer="),
    "mxnet": ("--server=nobody", "--port"),
    "roles": ("--roles=m=master,w=worker", "--env=A={rank};B B=1", "--env=1A=x;é=1", "--port=22"),
    "hcclrank": ("--worker=w-1",),
    "task-topology": ("--affinity=ps,worker", "--task-order=,"),
    "env": ("--x=1", ""),
}
PATHS = ("/etc/volcano", "/etc/volcano/", "/root/.ssh", "/root/.ssh/config", "/etc/mpi", "/data")
PORTS = ("mpijob-port", "pytorchjob-port", "gcs", "dashboard", "rolesjob-port", "web")
NUMBERS = (22, 23456, 6379, 8265, 9000, 29500, 80)
QUEUES = ("default", "q" * 63, "1.q")
LARGE = (1, 100_000, 200_000, 260_000, 261_500, 262_100)


def name_of(draw: Random, length: int) -> str:
    """A DNS label of that length."""
    inner = "".join(draw.choices("abc0123456789-", k=max(length - 2, 0)))
    return (draw.choice("abcxyz0") + inner + draw.choice("abc123"))[:length].rstrip("-") or "j"


def drawn_job(seed: int, namespace: str) -> Raw:
    """A Job, the same one of every seed."""
    draw = Random(seed)
    name = name_of(draw, draw.choice((1, 8, 30, 45, *range(46, 62))))
    plugins = draw.sample([each.name for each in builtin().plugins], draw.randrange(4))
    names = draw.sample(TASKS, draw.randrange(1, 4))
    names += [need for each, need in NEEDED.items() if each in plugins and need not in names]
    if draw.random() < 0.3:
        names[-1] = name_of(draw, max(1, 60 - len(name) + draw.randrange(-4, 2)))
    tasks = [_task(draw, each, name) for each in dict.fromkeys(names)]
    job = builders.job(
        name,
        tasks,
        namespace=namespace,
        annotations=_annotations(draw, "volcano.sh/revocable-zone"),
        plugins={each: draw.sample(WORDS[each], draw.randrange(2)) for each in plugins},
        queue=draw.choice(QUEUES),
    )
    if draw.random() < 0.1:
        job["metadata"]["generateName"] = job["metadata"].pop("name")
    if draw.random() < 0.2:
        job["spec"]["volumes"] = [_volume(draw)]
    return job


def _task(draw: Random, name: str, job: str) -> Raw:
    containers = [_container(draw, each, job) for each in draw.sample(("a", "head", "b"), 2)]
    spec: Raw = {"containers": containers[: draw.randrange(1, 3)]}
    if draw.random() < 0.2:
        first = draw.choice(("init", "wait-for-master", "wait-for-head"))
        spec["initContainers"] = [_container(draw, first, job)]
    used = {
        each["name"]
        for key in ("containers", "initContainers")
        for container in spec.get(key, ())
        for each in container.get("volumeMounts", ())
    }
    devices = {"persistentVolumeClaim": {"claimName": "block"}}
    spec["volumes"] = [{"name": each, "emptyDir": {}} for each in sorted(used)]
    spec["volumes"].append({"name": "block", **devices})
    optional: Raw = {
        "hostNetwork": True,
        "hostname": "h" * 63,
        "subdomain": "s" * 63,
        "resources": draw.choice(({"requests": {"cpu": "5m"}}, {"limits": {"memory": "8Mi"}})),
        "os": {"name": "windows"},
    }
    spec |= {key: value for key, value in optional.items() if draw.random() < 0.07}
    replicas = draw.choice((0, 1, 1, 2, 10, 11, 1000))
    return builders.task(name, replicas, spec=spec, annotations=_annotations(draw, "notes"))


def _container(draw: Random, name: str, job: str) -> Raw:
    container: Raw = {"name": name, "image": "i", "env": [{"name": "VC_TASK_INDEX", "value": "x"}]}
    if draw.random() < 0.3:
        volume = draw.choice(("own", f"{job}-svc", f"{job}-ssh"))
        container["volumeMounts"] = [{"name": volume, "mountPath": draw.choice(PATHS)}]
    elif draw.random() < 0.2:
        container["volumeDevices"] = [{"name": "block", "devicePath": draw.choice(PATHS[:-1])}]
    if draw.random() < 0.3:
        container["ports"] = [{"name": draw.choice(PORTS), "containerPort": draw.choice(NUMBERS)}]
    return container


def _annotations(draw: Random, key: str) -> dict[str, str]:
    return {key: "v" * draw.choice(LARGE)} if draw.random() < 0.2 else {}


def _volume(draw: Random) -> Raw:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5Gi"}}}
    said = draw.choice(({"volumeClaim": claim}, {"volumeClaimName": "c." * 100 + "c"}))
    return {"mountPath": draw.choice(("/data", "rel", "/x/")), **said}
