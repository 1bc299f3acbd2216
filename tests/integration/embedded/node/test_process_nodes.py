"""Pods of a node of processes beside each other, over time: names, updates, deletion, logs, further programs, limits, the end."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pumice.api import kinds
from pumice.embedded import ApiStatusError
from pumice.embedded.node.namespaces import NodeError
from pumice.embedded.pod_streams import ContainerCommandRequest, ContainerLogRequest
from tests.integration.embedded.node.conftest import (
    FIRST,
    LocalNode,
    cgroups_here,
    container,
    shell,
)
from tests.kit.waiting import until

WAITING = "trap 'exit 0' TERM; sleep 1000 & wait"


def service(name: str, selector: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": selector, "ports": [{"port": 80}], **spec},
    }


async def read(node: LocalNode, name: str, **how: Any) -> list[str]:
    parts = [
        part
        async for part in node.kubelet.read_log(ContainerLogRequest("default", name, "main", **how))
    ]
    return b"".join(parts).decode().splitlines()


async def execute(node: LocalNode, name: str, *command: str) -> tuple[int, str]:
    reading, writing = os.pipe()
    null = os.open("/dev/null", os.O_RDONLY)
    try:
        asked = ContainerCommandRequest("default", name, "main", command, frozenset())
        code = await node.kubelet.execute(asked, [null, writing, writing])
    finally:
        os.close(writing)
        os.close(null)
    with os.fdopen(reading) as stream:
        return code, stream.read()


async def test_pods_find_each_other_by_the_names_of_services(node: LocalNode) -> None:
    node.create(
        service("team", {"app": "a"}, clusterIP="None", publishNotReadyAddresses=True),
        service("single", {"app": "b"}),
        service("several", {"app": "a"}),
    )
    for index in range(2):
        spec = {
            "hostname": f"a{index}",
            "subdomain": "team",
            "containers": [shell(WAITING)],
        }
        node.run(f"a{index}", spec, labels={"app": "a"})
    node.run("b", {"containers": [shell(WAITING)]}, labels={"app": "b"})
    for name in ("a0", "a1", "b"):
        await node.phase(name, "Running")
    addresses = {name: node.status(name)["podIP"] for name in ("a0", "a1", "b")}

    async def resolved(name: str) -> set[str]:
        _, text = await execute(node, "a0", "getent", "ahostsv4", name)
        return {line.split()[0] for line in text.splitlines()}

    team = {addresses["a0"], addresses["a1"]}
    wanted = {
        "team": team,
        "a1.team": {addresses["a1"]},
        "a1.team.default.svc.cluster.local": {addresses["a1"]},
        "single.default": {addresses["b"]},
        "several": team,
    }

    async def all_known() -> bool:
        return {name: await resolved(name) for name in wanted} == wanted

    await until(all_known)
    assert await resolved("a1") == set()
    node.cluster.store.delete(kinds.POD, "a1", "default")

    async def is_forgotten() -> bool:
        return await resolved("a1.team") == set()

    await until(is_forgotten)


async def test_pods_talk_over_the_bridge(node: LocalNode) -> None:
    script = "exec python3 -m http.server 8000 --bind 0.0.0.0 --directory /etc/alternatives"
    node.run("server", {"containers": [shell(script)]})
    await node.phase("server", "Running")
    address = node.status("server")["podIP"]
    ask = (
        f"import urllib.request as u; print(u.urlopen('http://{address}:8000/', timeout=5).status)"
    )
    node.run(
        "client",
        {"containers": [shell(f'until python3 -c "{ask}" 2>/dev/null; do sleep 0.1; done')]},
    )
    await node.says("client", "200")


async def test_files_follow_their_objects_and_labels(node: LocalNode) -> None:
    data = {"one": "1"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    node.create(config)
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    spec = {
        "volumes": [
            {"name": "c", "configMap": {"name": "c"}},
            {"name": "d", "downwardAPI": {"items": [labels]}},
        ],
        "containers": [
            shell(
                "while :; do echo $(ls /c) $(cat /c/*) $(cat /d/labels); sleep 0.05; done",
                volumeMounts=[{"name": "c", "mountPath": "/c"}, {"name": "d", "mountPath": "/d"}],
            )
        ],
    }
    node.run("p", spec, labels={"a": "b"})
    await node.says("p", 'one 1 a="b"')
    node.cluster.store.update(config | {"data": {"two": "2"}})
    await node.says("p", 'two 2 a="b"')
    pod = node.pod("p")
    pod["metadata"]["labels"] = {"a": "c"}
    node.cluster.store.update(pod)
    await node.says("p", 'two 2 a="c"')


async def test_a_pod_waits_for_what_it_mounts(node: LocalNode) -> None:
    spec = {
        "volumes": [{"name": "c", "configMap": {"name": "late"}}],
        "containers": [container("true", volumeMounts=[{"name": "c", "mountPath": "/c"}])],
    }
    node.run("p", spec)
    await until(lambda: "there is no ConfigMap late" in node.events())
    (event,) = node.cluster.store.list(kinds.EVENT)
    about = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default"}
    assert event["involvedObject"] == about | {"uid": node.pod("p")["metadata"]["uid"]}
    node.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}, "data": {}})
    await node.phase("p", "Succeeded")


async def test_a_deleted_pod_has_its_grace(node: LocalNode) -> None:
    good = "trap 'echo ending; sleep 0.3; echo ended; exit 0' TERM; echo up; sleep 1000 & wait"
    node.run("good", {"containers": [shell(good)]})
    node.run("deaf", {"containers": [shell("trap '' TERM; echo up; sleep 1000")]})
    for name, grace in (("good", 30), ("deaf", 1)):
        await node.says(name, "up")
        node.cluster.store.delete(kinds.POD, name, "default", grace=grace)
    for name in ("good", "deaf"):
        await until(partial(node.is_gone, name))
    assert node.log("good") == ["up", "ending", "ended"]


async def test_a_pod_that_is_removed_at_once_leaves_no_process(node: LocalNode) -> None:
    node.run("p", {"containers": [shell("echo up; exec sleep 4711")]})
    await node.says("p", "up")
    node.cluster.store.delete(kinds.POD, "p", "default", grace=0)
    await until(lambda: not _processes("sleep 4711"))


async def test_containers_that_crash_pause_longer_each_time(node: LocalNode) -> None:
    node.run("p", {"restartPolicy": "Always", "containers": [shell("echo run; exit 1")]})

    def waits() -> Any:
        (status,) = node.status("p").get("containerStatuses") or [{}]
        return (status.get("state") or {}).get("waiting", {}).get("reason") == "CrashLoopBackOff"

    await until(waits)
    (status,) = node.status("p")["containerStatuses"]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert "back-off 10s" in status["state"]["waiting"]["message"]
    assert node.status("p")["phase"] == "Running"
    assert await read(node, "p", previous=True) == ["run"]


async def test_logs_are_read_as_kubectl_asks(node: LocalNode) -> None:
    node.run("p", {"containers": [shell("for i in 1 2 3; do echo $i; done; sleep 1; echo last")]})
    await node.says("p", "3")
    assert await read(node, "p", tail=2) == ["2", "3"]
    assert await read(node, "p", limit=2) == ["1"]
    assert await read(node, "p", tail=1, follow=True) == ["3", "last"]
    (line,) = await read(node, "p", tail=1, timestamps=True)
    assert line.endswith("Z last")
    assert await read(node, "p", since_time=node.kubelet.now() + 60) == []
    with pytest.raises(ApiStatusError, match="previous terminated container"):
        await read(node, "p", previous=True)


@pytest.mark.parametrize("mode", FIRST, indirect=True)
async def test_a_log_has_a_limit(node: LocalNode) -> None:
    script = "head -c 10000000 /dev/zero | tr '\\0' x | fold -w 999; echo; echo last"
    node.run("p", {"containers": [shell(script)]})
    await node.phase("p", "Succeeded")
    sizes = [each.stat().st_size for each in node.machine.folder.rglob("*.log*")]
    assert len(sizes) == 2
    assert max(sizes) < 9 * 2**20
    assert (await read(node, "p"))[-1] == "last"


async def test_a_further_program_runs_in_the_container(node: LocalNode) -> None:
    spec = {
        "containers": [
            shell("touch /srv/here; echo up; exec sleep 1000", env=[{"name": "A", "value": "b"}])
        ]
    }
    node.run("p", spec)
    await node.says("p", "up")
    await node.phase("p", "Running")  # it says so before it is known to run
    assert await execute(node, "p", "sh", "-c", "ls /srv; echo $A; hostname; exit 3") == (
        3,
        "here\nb\np\n",
    )
    assert await execute(node, "p", "sh", "-c", "kill -9 $$") == (137, "")
    assert await execute(node, "p", "sh", "-c", "echo /proc/self/fd/*") == (
        0,
        "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n",
    )
    with pytest.raises(ApiStatusError, match="executable file not found"):
        await execute(node, "p", "no-such-program")
    script = (
        "cat /proc/1/cgroup >/tmp/first; cat /proc/self/cgroup >/tmp/own; cmp /tmp/first /tmp/own"
    )
    assert await execute(node, "p", "sh", "-c", script) == (0, "")


async def test_a_pod_that_fills_its_termination_message_ends_alone(node: LocalNode) -> None:
    fill = "head -c 80000000 /dev/zero >/dev/termination-log; sleep 100"
    node.run("fills", {"containers": [shell(fill)]})
    await node.phase("fills", "Failed")
    assert "messages and files of volumes take more than 64 MiB" in node.status("fills")["message"]
    node.run("other", {"containers": [container("true")]})
    await node.phase("other", "Succeeded")


async def test_the_pod_that_holds_most_ends_when_all_hold_too_much(node: LocalNode) -> None:
    write = "head -c {} /dev/zero >/tmp/x; echo written; exec sleep 1000"
    node.run("less", {"containers": [shell(write.format(45_000_000))]})
    await node.says("less", "written")
    node.run("most", {"containers": [shell(write.format(60_000_000))]})
    await node.phase("most", "Failed")
    text = "pods hold more than the 96 MiB that they may together, and this one most"
    assert node.status("most")["message"] == text
    assert node.status("less")["phase"] == "Running"


@pytest.mark.parametrize("mode", FIRST if cgroups_here() else [], indirect=True)
async def test_memory_beyond_the_limit_ends_the_container(node: LocalNode) -> None:
    limits = {"limits": {"memory": "32Mi", "cpu": "500m"}}
    hungry = container("python3", "-c", "x = bytearray(200_000_000)", resources=limits)
    node.run("p", {"containers": [hungry]})
    await node.phase("p", "Failed")
    ended = node.status("p")["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


async def test_a_pod_with_finalizers_stays_and_does_not_run(node: LocalNode) -> None:
    node.run("p", {"containers": [shell(WAITING)]}, finalizers=["example.com/keep"])
    await node.phase("p", "Running")
    node.cluster.store.delete(kinds.POD, "p", "default", grace=1)
    await node.phase("p", "Succeeded", "Failed")


async def test_a_request_that_fails_in_any_way_ends_no_other_pod(node: LocalNode) -> None:
    node.run("p", {"containers": [shell("echo up; exec sleep 4714")]})
    await node.says("p", "up")
    for path in ("a\0b", "a/../../b"):
        files = {path: ["text", 0o644]}
        how: dict[str, Any] = {
            "pod": "pod0",
            "volume": "0",
            "version": f"v{len(path)}",
            "group": None,
        }
        with pytest.raises(NodeError):
            await node.machine.namespaces.ask("files", files=files, **how)
    assert await execute(node, "p", "echo", "alive") == (0, "alive\n")


async def test_nothing_outlives_the_first_process(node: LocalNode) -> None:
    node.run("p", {"containers": [shell("sleep 4712 & echo up; exec sleep 4712")]})
    await node.says("p", "up")
    os.kill(_child(node.machine.namespaces.pid), signal.SIGKILL)
    await until(lambda: not _processes("sleep 4712"))
    await asyncio.wait_for(node.machine.namespaces.ended, 10)
    assert str(node.machine.folder.parent) not in _mounts()


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def _processes(command: str) -> list[str]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = each.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if text == command:
            found.append(each.parent.name)
    return found
