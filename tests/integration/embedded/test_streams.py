"""Logs of pods that really run, and commands in them, as clients ask the embedded server for them."""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from pumice.api.kinds import POD
from pumice.embedded import EmbeddedCluster
from pumice.embedded.node.kubelet import Kubelet
from pumice.embedded.node.machine import local_machine
from tests.kit.waiting import until

PODS = "/api/v1/namespaces/default/pods"
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
SUCCESS = {"metadata": {}, "status": "Success"}
FOREVER = "exec sleep 1000"


@pytest.fixture
async def running() -> AsyncIterator[EmbeddedCluster]:
    """A cluster whose only node is this machine."""
    async with local_machine({}, ()) as machine:
        cluster = EmbeddedCluster(
            nodes=lambda store, clock: Kubelet(store, clock, machine, lambda *_: None)
        )
        async with cluster:
            cluster.add_node("here")
            yield cluster


@pytest.fixture
async def session(running: EmbeddedCluster) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(running.url) as found:
        yield found


async def start(cluster: EmbeddedCluster, script: str, *others: str, **spec: Any) -> None:
    """Run scripts in containers `c0`, `c1` … of a pod, and wait until it has begun."""
    containers = [
        {"name": f"c{number}", "image": "any", "command": ["sh", "-c", each]}
        for number, each in enumerate((script, *others))
    ]
    cluster.store.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {
                "nodeName": "here",
                "containers": containers,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                **spec,
            },
        }
    )
    await until(lambda: status(cluster).get("phase", "Pending") != "Pending")


def status(cluster: EmbeddedCluster) -> dict[str, Any]:
    pod = cluster.store.get(POD, "p", "default")
    assert pod is not None
    return pod.get("status") or {}


async def log(session: aiohttp.ClientSession, **query: str) -> str:
    async with session.get(f"{PODS}/p/log", params=query) as response:
        text = await response.text()
        assert response.status == 200, text
        return text


async def printed(session: aiohttp.ClientSession, text: str) -> None:
    """Wait until the pod's log is this text."""

    async def is_there() -> bool:
        return await log(session) == text

    await until(is_there, text)


async def refusal(session: aiohttp.ClientSession, below: str, **query: str) -> str:
    async with session.get(f"{PODS}/p/{below}", params=query) as response:
        assert response.status == 400
        return str((await response.json())["message"])


class Command:
    """A command in a container.

    Attributes:
        written: What it has written, by stream.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.written: defaultdict[int, bytes] = defaultdict(bytes)

    async def send(self, stream: int, content: bytes) -> None:
        await self.socket.send_bytes(bytes([stream]) + content)

    async def read(self, wanted: bytes) -> None:
        """Read until the command has written something."""
        while wanted not in self.written[1]:
            message = await self.socket.receive(30)
            assert message.type is aiohttp.WSMsgType.BINARY
            self.written[message.data[0]] += message.data[1:]

    async def end(self) -> Any:
        """Its Status."""
        async with asyncio.timeout(30):
            async for message in self.socket:
                self.written[message.data[0]] += message.data[1:]
        return json.loads(self.written[3])


async def command(
    session: aiohttp.ClientSession,
    script: str,
    streams: str = "stdin stdout stderr",
    protocol: str = V5,
    **query: str,
) -> Command:
    words = [("command", each) for each in ("sh", "-c", script)]
    asked = [*words, *((each, "true") for each in streams.split()), *query.items()]
    socket = await session.ws_connect(f"{PODS}/p/exec", params=asked, protocols=(protocol,))
    assert socket.protocol == protocol
    return Command(socket)


async def test_a_log_as_a_whole_and_in_parts(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, f"echo one; echo two; echo three; {FOREVER}")
    begun = time.time()
    await printed(session, "one\ntwo\nthree\n")
    assert await log(session, container="c0", tailLines="1") == "three\n"
    assert await log(session, limitBytes="5") == "one\nt"
    assert (await log(session, timestamps="true")).splitlines()[2].endswith("Z three")
    assert await log(session, sinceSeconds="3600", tailLines="2") == "two\nthree\n"
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun + 3600))
    assert await log(session, sinceTime=later) == ""


async def test_a_log_is_followed_to_the_end_of_its_container(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, "mkfifo /tmp/in; echo begun; read line < /tmp/in; echo $line")
    async with session.get(f"{PODS}/p/log", params={"follow": "true"}) as response:
        assert await response.content.readline() == b"begun\n"
        other = await command(session, "echo said > /tmp/in", streams="stdout")
        await other.end()  # by itself, or with the container
        assert await response.text() == "said\n"
    await until(lambda: status(running)["phase"] == "Succeeded")
    assert await log(session) == "begun\nsaid\n"
    why = "cannot exec into a container in a completed pod; current phase is Succeeded"
    assert await refusal(session, "exec", command="ls", stdout="true") == why


async def test_the_log_from_before_a_restart(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    script = (
        f"test -e /kept/again && echo second && {FOREVER}; echo first; touch /kept/again; exit 1"
    )
    container = {
        "name": "c0",
        "image": "any",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "kept", "mountPath": "/kept"}],
    }
    volumes = [{"name": "kept", "emptyDir": {}}]
    await start(running, "", containers=[container], volumes=volumes, restartPolicy="Always")
    await printed(session, "second\n")
    assert await log(session, previous="true") == "first\n"


async def test_a_container_that_was_never_restarted_has_no_former_log(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, FOREVER)
    why = 'previous terminated container "c0" in pod "p" not found'
    assert await refusal(session, "log", previous="true") == why


async def test_streams_of_a_command(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, FOREVER, FOREVER)
    script = "cat; echo wrong >&2; exit 3"
    ran = await command(session, script, container="c1")
    await ran.send(0, b"a" * 100_000)
    await ran.send(255, b"\0")
    ended = await ran.end()
    assert (ran.written[1], ran.written[2]) == (b"a" * 100_000, b"wrong\n")
    assert ended["reason"] == "NonZeroExitCode"
    assert ended["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert ended["message"] == "command terminated with non-zero exit code: exit status 3"


@pytest.mark.parametrize("protocol", [V4, V5])
async def test_a_command_without_input_reads_its_end(
    running: EmbeddedCluster, session: aiohttp.ClientSession, protocol: str
) -> None:
    await start(running, FOREVER)
    ran = await command(session, "cat; echo done", "stdout", protocol)
    assert await ran.end() == SUCCESS
    assert ran.written[1] == b"done\n"


async def test_a_terminal_has_a_name_and_the_size_that_the_client_says(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, FOREVER)
    ran = await command(session, "stty -echo; tty; echo go; read x; stty size; cat", tty="true")
    await ran.read(b"/dev/pts/0\r\ngo")
    await ran.send(4, b"nonsense")
    await ran.send(4, b'{"Width": -1, "Height": 2}')
    await ran.send(4, b'{"Width": 123, "Height": 45}')
    await ran.send(0, b"\n")
    await ran.read(b"45 123\r\n")
    await ran.send(255, b"\0")
    assert await ran.end() == SUCCESS


async def test_what_a_command_leaves_in_the_background_does_not_hold_it(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, FOREVER)
    ran = await command(session, "sleep 1000 & echo started")
    assert await ran.end() == SUCCESS
    assert ran.written[1] == b"started\n"


async def test_a_command_whose_client_leaves_is_killed(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, FOREVER)
    ran = await command(session, "echo go; exec sleep 4321")
    await ran.read(b"go")
    await ran.socket.close()

    async def is_gone() -> bool:
        other = await command(session, "cat /proc/[0-9]*/cmdline", "stdout")
        await other.end()
        assert b"1000" in other.written[1]
        return b"4321" not in other.written[1]

    await until(is_gone)


async def test_a_program_that_is_not_there(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, FOREVER)
    asked = {"command": "/no/such", "stdout": "true"}
    async with session.ws_connect(f"{PODS}/p/exec", params=asked, protocols=(V5,)) as socket:
        ended = await Command(socket).end()
    assert ended["status"] == "Failure"
    assert "/no/such" in ended["message"]


async def test_what_is_not_served_says_what_is(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, FOREVER)
    why = f"streams need a WebSocket with the protocol {V5} or {V4}: use kubectl 1.31 or newer"
    assert await refusal(session, "exec", command="ls", stdout="true") == why
    for below in ("attach", "portforward"):
        why = f"pods of this cluster have no {below}: use `kubectl logs -f` or `kubectl exec`"
        assert await refusal(session, below) == why


async def test_many_commands_that_end_at_once(
    running: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    await start(running, FOREVER)

    async def one(number: int) -> str:
        ran = await command(session, f"exit {number % 3}", "stdout")
        ended = await ran.end()
        return str(ended["status"])

    found = await asyncio.gather(*map(one, range(60)))
    assert [each == "Success" for each in found] == [number % 3 == 0 for number in range(60)]
