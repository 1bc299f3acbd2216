"""The file of resource groups, followed by a running server."""

import asyncio
import json
import logging
import signal
import urllib.request
from pathlib import Path

import aiohttp
import pytest

from pumice.webhook.rules.resource_groups import ResourceGroups
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.worker import GroupsFile
from tests.integration.cli.running import running as command
from tests.integration.webhook.serving import Raw, offline, running
from tests.kit.builders import pod, queue
from tests.kit.clocks import ManualClock
from tests.kit.waiting import wait_until
from tests.support.ports import free_port
from tests.unit.webhook.reviewing import operations, request, review

JSON = {"Content-Type": "application/json"}
NAME = "volcano-admission.conf"


def groups(*names: str) -> str:
    return json.dumps(
        {"resourceGroups": [{"resourceGroup": name, "labels": {"class": name}} for name in names]}
    )


class Mount:
    """A ConfigMap as kubelet mounts it: a link to a link into a folder of its own for each version."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / NAME
        self._folder = folder
        self._version = 0

    def write(self, text: str) -> None:
        """Swap in another version, all at once."""
        self._version += 1
        version = self._folder / f"..{self._version}"
        version.mkdir()
        (version / NAME).write_text(text)
        link = self._folder / "..data_tmp"
        link.symlink_to(version.name)
        link.replace(self._folder / "..data")
        if not self.file.is_symlink():
            self.file.symlink_to(Path("..data") / NAME)


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path)


class Taken:
    """What a file has put into effect."""

    def __init__(self, path: Path) -> None:
        self.metrics = ServerMetrics()
        self.names: list[list[str]] = []
        self.file = GroupsFile(path, self._use, self.metrics)

    def problem(self) -> str | None:
        return self.file.problem

    def _use(self, found: ResourceGroups) -> None:
        self.names.append([each.name for each in found.groups])

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"pumice_admission_{name}", labels) or 0.0


def test_a_file_counts_from_when_it_first_appears(mount: Mount) -> None:
    taken = Taken(mount.file)
    assert taken.problem() == (f"{mount.file}: is not there yet; no resource groups are in effect")
    assert taken.value("conf_unusable") == 1
    mount.write(groups("a", "b"))
    assert taken.file.look()
    assert taken.problem() is None
    assert taken.names == [["a", "b"]]
    assert (taken.value("conf_unusable"), taken.value("resource_groups")) == (0, 2)
    assert not taken.file.look()
    assert taken.value("conf_reads_total", result="loaded") == 1


def test_a_bad_file_leaves_the_last_good_one_in_force(
    mount: Mount, caplog: pytest.LogCaptureFixture
) -> None:
    mount.write(groups("a"))
    taken = Taken(mount.file)
    mount.write("resourceGroups:\n- {}\n- {}\n")
    assert not taken.file.look()
    assert not taken.file.look()
    assert taken.names == [["a"]]
    assert taken.problem() == (
        f"{mount.file}: line 2: resourceGroups[0]: needs a name (resourceGroup), or an object that says "
        "which pods are its (and 1 more, see the log); the groups read before stay"
    )
    assert (taken.value("conf_unusable"), taken.value("resource_groups")) == (1, 1)
    assert taken.value("conf_reads_total", result="failed") == 1
    errors = [each.message for each in caplog.records if each.levelno == logging.ERROR]
    assert [text.split(": ")[1] for text in errors] == ["line 2", "line 3"]
    mount.write(groups("b"))
    assert taken.file.look()
    assert taken.names == [["a"], ["b"]]
    assert taken.problem() is None
    assert taken.value("conf_unusable") == 0


def test_a_bad_file_at_the_start_is_no_reason_not_to_start(tmp_path: Path) -> None:
    file = tmp_path / NAME
    file.write_bytes(b"\xff")
    taken = Taken(file)
    assert str(taken.problem()).endswith("byte 0xff; no resource groups are in effect")
    file.write_text(groups("a"))
    assert taken.file.look()
    assert taken.names == [["a"]]


def test_a_file_that_goes_leaves_its_groups(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / NAME
    file.write_text(groups("a"))
    taken = Taken(file)
    file.unlink()
    for _ in range(3):
        assert not taken.file.look()
    assert taken.problem() == f"{file}: is gone; the groups read before stay"
    assert [each.message for each in caplog.records if each.levelno == logging.WARNING] == [
        taken.problem()
    ]
    file.mkdir()
    assert not taken.file.look()
    assert taken.problem() == (
        f"{file}: cannot be read: Is a directory; the groups read before stay"
    )
    file.rmdir()
    file.symlink_to("/dev/zero")
    assert not taken.file.look()
    assert taken.problem() == (
        f"{file}: has more than 16,777,216 bytes, the limit of kubeconfigs, certificates and settings; the groups read before stay"
    )
    file.unlink()
    file.write_text(groups("a"))
    assert taken.file.look()
    assert taken.problem() is None


def test_what_has_no_effect_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / NAME
    file.write_text("resourceGroups: [{resourceGroup: a, lables: {}}]")
    taken = Taken(file)
    assert taken.names == [["a"]]
    assert 'lables: unknown key, ignored (did you mean "labels"?)' in caplog.text


def member(group: str) -> Raw:
    return pod(annotations={"volcano.sh/resource-group": group})


async def given(client: aiohttp.ClientSession, address: str, obj: Raw) -> list[Raw]:
    """What the server writes to a pod."""
    body = review(request("/pods/mutate", obj))
    async with client.post(f"http://{address}/pods/mutate", data=body, headers=JSON) as answer:
        response: Raw = (await answer.json())["response"]
    assert response["allowed"]
    return operations(response)


async def test_a_server_follows_the_file_while_it_answers(
    client: aiohttp.ClientSession, mount: Mount
) -> None:
    clock = ManualClock()
    worker = offline(conf=mount.file, clock=clock)
    async with running(worker) as address:
        readyz = f"http://{address}/readyz?verbose"

        async def becomes(group: str, labels: Raw | None) -> None:
            wanted = [{"op": "add", "path": "/spec/nodeSelector", "value": labels}]
            async with asyncio.timeout(60):
                while await given(client, address, member(group)) != (wanted if labels else []):
                    await clock.advance(1)

        await becomes("gpu", None)
        async with client.get(readyz) as answer:
            assert answer.status == 200
            assert f"[!]resource groups: {mount.file}: is not there yet" in await answer.text()
        mount.write(groups("gpu"))
        await becomes("gpu", {"class": "gpu"})
        async with client.get(readyz) as answer:
            assert await answer.text() == "[+]draining: ok\n[+]resource groups: ok\n"
        async with client.get(f"http://{address}/readyz") as answer:
            assert await answer.text() == "ok\n"
        mount.write(groups("tpu"))
        await becomes("tpu", {"class": "tpu"})
        await becomes("gpu", None)


def fetched(url: str, body: bytes | None = None) -> str:
    """What a URL answers."""
    asked = urllib.request.Request(url, body, JSON)
    with urllib.request.urlopen(asked, timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def is_ready(url: str) -> bool:
    try:
        return fetched(f"{url}/readyz") == "ok\n"
    except OSError:
        return False


def test_a_process_reads_the_file_again_within_seconds(tmp_path: Path) -> None:
    """First appearance, a change, a mistake: at the command that users run."""
    state, conf = tmp_path / "queues.yaml", Mount(tmp_path)
    state.write_text(json.dumps(queue("research")))
    url = f"http://127.0.0.1:{(port := free_port())}"
    arguments = ("--state", str(state), "--admission-conf", str(conf.file), "--port", str(port))

    def labels(group: str) -> Raw:
        asked = review(request("/pods/mutate", member(group)))
        response = json.loads(fetched(f"{url}/pods/mutate", asked))["response"]
        return {key: value for each in operations(response) for key, value in each["value"].items()}

    with command("webhook", *arguments) as process:
        wait_until(lambda: is_ready(url), "the webhook gets ready without the file")
        assert labels("gpu") == {}
        conf.write(groups("gpu"))
        wait_until(lambda: labels("gpu") == {"class": "gpu"}, "the file is read when it appears")
        conf.write("resourceGroups:\n- resourceGroup: gpu\n  tolerations: [{operator: Never}]\n")
        wait_until(
            lambda: "pumice_admission_conf_unusable 1.0" in fetched(f"{url}/metrics"),
            "the mistake is noticed",
        )
        assert labels("gpu") == {"class": "gpu"}
        said = fetched(f"{url}/readyz?verbose")
        assert f"[!]resource groups: {conf.file}: line 3: resourceGroups[0].tolerations[0]" in said
        assert said.splitlines()[-1].endswith("the groups read before stay")
        conf.write(groups("gpu", "tpu"))
        wait_until(lambda: labels("tpu") == {"class": "tpu"}, "the file is read when it is fixed")
        counted = fetched(f"{url}/metrics")
        assert "pumice_admission_conf_unusable 0.0" in counted
        assert "pumice_admission_resource_groups 2.0" in counted
        assert 'pumice_admission_conf_reads_total{result="failed"} 1.0' in counted
        code, said = process.stop(signal.SIGTERM)
    assert code == 0
    logged = [json.loads(line) for line in said.splitlines()]
    assert [each["event"].partition(": ")[2] for each in logged if each["level"] == "error"] == [
        'line 3: resourceGroups[0].tolerations[0].operator: must be Equal or Exists, found "Never"'
    ]
