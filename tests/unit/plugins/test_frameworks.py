"""What the framework plugins write into pods and want beside them, row by row.

The tables are `tests/cases/plugins/<plugin>.yaml`. A row gives

- `job`: name, then tasks as [name, replicas, hostname, subdomain]; `templates`: task to what its pod's spec has;
- `minimum`: task to its `minAvailable`; `volumes` of the Job; `arguments` of the plugin; `with`: further plugins and their arguments;
- `pod`: name and task annotation, of a pod with containers c0 and c1 and init container i0; `containers`: what
  these have, by name; `pod_spec`, `pod_annotations`: what the pod has besides.

and expects, where it says so,

- `env`: "NAME=value" of every container; `has`, `lacks`: some of them, or names, that are there or not;
  `init_env`, `init_has`: the same of every init container;
- `ports` ("name:number", or the number alone) and `command`, `args` by container; `init_containers`: names;
- `wait`: the wait step, for `hosts` or for those of a `file`; `annotations` of the pod; `unchanged`; `refused`: what the error says;
- `objects`: "Kind/name"; `service`: [port, target] by port; `policy`: the last NetworkPolicy; `files`: data of the
  plugin's own ConfigMap, null where it wants none;
- `errors`, `warnings`: codes that admission gives, none unless said.

`upstream` is what strict-upstream gives where it differs. Rows keep the ids of the reference.
"""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pumice.api.jobs import Job, Volume
from pumice.plugins import PluginError, Raw, Wiring, builtin, problems
from tests.unit.plugins.support import containers, job_of, pod_of, rows, wired

TABLES = ("pytorch", "mpi", "mxnet", "ray", "hcclrank", "roles")
ROWS = [
    pytest.param(table, *row.values, id=f"{table}-{row.id}")
    for table in TABLES
    for row in rows(table)
]


def job_of_row(plugin: str, row: Raw) -> Job:
    plugins = {plugin: row.get("arguments", []), **row.get("with", {})}
    job = job_of(row["job"], plugins)
    if "volumes" in row:
        volumes = msgspec.convert(row["volumes"], list[Volume])
        job = replace(job, spec=replace(job.spec, volumes=volumes))
    if "minimum" in row:
        least = row["minimum"]
        tasks = [replace(each, min_available=least.get(each.name)) for each in job.tasks]
        job = replace(job, spec=replace(job.spec, tasks=tasks))
    for task in job.tasks:
        task.pod_spec().update(row.get("templates", {}).get(task.name, {}))
    return job


def pod_of_row(row: Raw) -> Raw:
    pod = pod_of(*row["pod"])
    pod["spec"] |= row.get("pod_spec", {})
    pod["metadata"].setdefault("annotations", {}).update(row.get("pod_annotations", {}))
    for each in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
        each |= row.get("containers", {}).get(each["name"], {})
    return pod


def env(container: Raw) -> list[str]:
    return [f"{each['name']}={each.get('value', '…')}" for each in container.get("env", ())]


def ports(container: Raw) -> list[str]:
    return [
        f"{each['name']}:{each['containerPort']}" if "name" in each else str(each["containerPort"])
        for each in container.get("ports", ())
    ]


@pytest.mark.parametrize("strict_upstream", [False, True], ids=["pumice", "upstream"])
@pytest.mark.parametrize(("plugin", "row"), ROWS)
def test_a_pod_is_wired_as_the_table_says(plugin: str, row: Raw, strict_upstream: bool) -> None:
    job, pod = job_of_row(plugin, row), pod_of_row(row)
    if "refused" in row:
        with pytest.raises(PluginError, match=row["refused"]):
            wired(job, pod)
        return

    found = wired(job, pod, strict_upstream=strict_upstream)

    expected = row.get("upstream", row) if strict_upstream else row
    assert wired(job, found, strict_upstream=strict_upstream) is found
    if expected.get("unchanged"):
        assert found["spec"] == pod["spec"]
        assert list(found["metadata"]["annotations"].keys() - pod["metadata"]["annotations"]) == [
            "pumice.dev/wired"
        ]
        return
    assert_variables(expected, found)
    assert_containers(expected, found)
    for key, value in expected.get("annotations", {}).items():
        assert found["metadata"]["annotations"].get(key) == value
    if "wait" in expected:
        assert_wait(expected["wait"], found, strict_upstream)


def assert_variables(expected: Raw, pod: Raw) -> None:
    for container in pod["spec"]["containers"]:
        found = env(container)
        assert found == expected.get("env", found)
        assert set(expected.get("has", ())) <= set(found)
        names = {each.partition("=")[0] for each in found}
        assert not set(expected.get("lacks", ())) & {*names, *found}
    for container in pod["spec"]["initContainers"]:
        found = env(container)
        assert found == expected.get("init_env", found)
        assert set(expected.get("init_has", ())) <= set(found)


def assert_containers(expected: Raw, pod: Raw) -> None:
    edited = containers(pod)
    for name, wanted in expected.get("ports", {}).items():
        assert ports(edited[name]) == wanted, name
    for field in ("command", "args"):
        for name, wanted in expected.get(field, {}).items():
            assert edited[name].get(field) == wanted
    steps = [each["name"] for each in pod["spec"]["initContainers"]]
    assert steps == expected.get("init_containers", steps)


def assert_wait(wait: Raw, pod: Raw, strict_upstream: bool) -> None:
    step = containers(pod)[wait.get("name", "wait-for-master")]
    assert step["image"] == wait["image"]
    assert step["command"][:2] == ["sh", "-c"]
    script: Any = step["command"][2]
    assert f"port={wait['port']};" in script
    if "file" in wait:
        assert "\nwhile read -r host _; do\n" in script
        assert script.endswith(f"\ndone <{wait['file']}\n")
    else:
        assert f"\nfor host in {wait['hosts']}; do\n" in script
    assert f"gave up after {wait['timeout']} s" in script
    ours = not (strict_upstream and "name" not in wait)
    assert ("securityContext" in step, "resources" in step) == (ours, ours)


@pytest.mark.parametrize("strict_upstream", [False, True], ids=["pumice", "upstream"])
@pytest.mark.parametrize(("plugin", "row"), ROWS)
def test_objects_are_wanted_as_the_table_says(plugin: str, row: Raw, strict_upstream: bool) -> None:
    expected = row.get("upstream", row) if strict_upstream else row

    made = Wiring(job_of_row(plugin, row), builtin(), strict_upstream=strict_upstream).objects()

    names = [f"{each['kind']}/{each['metadata']['name']}" for each in made]
    assert names == expected.get("objects", names)
    if "files" in expected:
        own = [each["data"] for each in made if each["metadata"]["name"].endswith(f"-{plugin}")]
        assert own == ([] if expected["files"] is None else [expected["files"]])
    if "service" in expected:
        service = next(each for each in made if each["metadata"]["name"].endswith("-head-svc"))
        assert service["spec"]["selector"] == head(row)
        assert {
            each["name"]: [each["port"], each["targetPort"]] for each in service["spec"]["ports"]
        } == expected["service"]
    if "policy" in expected:
        policy = made[-1]
        assert policy["kind"] == "NetworkPolicy"
        assert policy["spec"]["podSelector"]["matchLabels"] == head(row)
        (rule,) = policy["spec"]["ingress"]
        assert rule["from"] == expected["policy"]["from"]
        assert [each["port"] for each in rule["ports"]] == expected["policy"]["ports"]


def head(row: Raw) -> Raw:
    """Labels of a Job's head, which is its first task."""
    job, (task, *_), *_ = row["job"]
    return {
        "volcano.sh/job-name": job,
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/task-spec": task,
    }


@pytest.mark.parametrize(("plugin", "row"), ROWS)
def test_admission_says_what_the_table_says(plugin: str, row: Raw) -> None:
    errors, warnings = problems(job_of_row(plugin, row), builtin())

    assert [each.code for each in errors] == row.get("errors", [])
    assert [each.code for each in warnings] == row.get("warnings", [])


@pytest.mark.parametrize("plugin", [*TABLES, "svc", "ssh", "tensorflow"])
def test_admission_makes_no_addresses(plugin: str) -> None:
    """It is asked about Jobs of any size, and answers without counting their pods one by one."""
    roles = ["--roles=worker", "--env=ALL={endpoints:worker}"]
    names = ("master", "head", "scheduler", "worker", "ps")
    largest = job_of(["j", *([name, 2**31 - 1] for name in names)], {plugin: roles})

    errors, warnings = problems(largest, builtin())

    assert len(errors) + len(warnings) < 100
