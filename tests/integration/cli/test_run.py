"""`pumice run` in processes of its own: Jobs that really run on this machine, their ends, and what is left when it is killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.runners import OTHERS, OWN, SINGLE, SUBORDINATE, USER, Runner, simple
from tests.integration.cli.running import SECONDS, children
from tests.kit.waiting import wait_until
from tests.support.controlplane.builder import Builder

IDLE = "trap 'echo ending; exit 0' TERM; echo up; sleep 1000 & wait"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = Path("/var/tmp") / f"pumice-run-{os.getpid()}-{tmp_path.name}"
    made.mkdir()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def runner(folder: Path) -> Runner:
    return Runner(folder)


@pytest.fixture(params=[OWN, *OTHERS])
def any_runner(request: pytest.FixtureRequest, folder: Path) -> Runner:
    return Runner(folder, request.param)


def test_a_gang_runs_wired_beside_a_pod_with_a_root_in_place_of_its_image(
    any_runner: Runner,
) -> None:
    script = 'for i in {1..100}; do getent hosts $(hostname).pair && break; sleep 0.1; done; cat note; echo "$VC_TASK_INDEX"; echo told >&2'
    (any_runner.folder / "note").write_text("of the caller's folder\n")
    manifest = simple("pair", script, 2)
    manifest["spec"]["plugins"] = {"svc": [], "env": []}
    lower, upper = _layers(any_runner)
    own = simple("own", "")
    (container,) = own["spec"]["tasks"][0]["template"]["spec"]["containers"]
    script = "read x </etc/layer; echo $x $PWD; echo changed >/etc/layer; echo /*"
    container |= {"image": "own", "command": ["sh", "-c", script]}
    ran = any_runner.run(any_runner.write(manifest, own), "--image", f"own={lower}:{upper}")
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()

    def written(pod: str) -> list[str]:
        return [line.removeprefix(f"{pod} | ") for line in lines if line.startswith(f"{pod} | ")]

    for index in range(2):
        pod = f"pair-worker-{index}"
        said = written(pod)
        assert re.fullmatch(rf"10\.244\.0\.\d+ +{pod}\.pair\.default.*", said[0]), said
        assert said[1:] == ["of the caller's folder", str(index), "told"]
    first, second = written("own-worker-0")
    assert first == "upper /"
    assert {"/bin", "/dev", "/etc", "/proc"} <= set(second.split())
    assert "/home" not in second
    assert (upper / "etc/layer").read_text() == "upper\n"
    assert "images: any: programs are this machine's; --image NAME=DIR" in ran.stderr
    assert "Job default/pair: Completed: 2 of 2 pods succeeded" in ran.stderr
    mode = {OWN: r"(full|single user)", SINGLE: "single user", SUBORDINATE: r"full \(newuidmap:"}
    assert re.search(rf"^mode: {mode[any_runner.user]}", ran.stderr, re.MULTILINE), ran.stderr
    assert not any_runner.left_over()


def _layers(runner: Runner) -> tuple[Path, Path]:
    """A root with a shell alone, and one to lay over it."""
    lower, upper = runner.folder / "lower", runner.folder / "upper"
    shell = shutil.which("dash") or "/bin/sh"
    needed = subprocess.run(["ldd", shell], capture_output=True, text=True, check=True).stdout
    for file in [shell, *re.findall(r"(/\S+) \(", needed)]:
        place = lower / ("bin/sh" if file == shell else file.lstrip("/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(file).resolve(), place)
    for each in (lower, upper):
        (each / "etc").mkdir(parents=True)
        (each / "etc/layer").write_text(f"{each.name}\n")
    if runner.user != OWN:
        subprocess.run(["chown", "-R", f"{USER}:{USER}", lower, upper], check=True)
    return lower, upper


@pytest.mark.parametrize("user", OTHERS[1:])
def test_pods_have_any_user_of_the_subordinate_ones(folder: Path, user: str) -> None:
    script = "id -u; id -G; touch /data/x; stat -c %u:%g:%a /data /data/x"
    context = {"runAsUser": 1234, "runAsGroup": 1235, "fsGroup": 2000}
    volume = {"name": "data", "emptyDir": {}}
    other = simple("other", script, volumes=[volume], securityContext=context)
    (container,) = other["spec"]["tasks"][0]["template"]["spec"]["containers"]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    runner = Runner(folder, user)
    ran = runner.run(runner.write(other))
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("mode: full (newuidmap: ")
    lines = [line.partition(" | ")[2] for line in ran.stdout.splitlines()]
    assert lines == ["1234", "1235 2000", "0:2000:2777", "1234:2000:644"]
    assert not runner.left_over()


def test_a_failed_pod_is_told_with_code_reason_and_last_lines(runner: Runner) -> None:
    script = "for i in {1..9}; do echo line $i; done; echo because >/dev/termination-log; exit 7"
    ran = runner.run(runner.write(simple("bad", script)))
    assert ran.returncode == 1
    told = "bad-worker-0 failed: container main ended with exit code 7 (Error): because"
    lines = ran.stderr.splitlines()
    assert lines[lines.index(told) + 1 :][:5] == [f"  line {number}" for number in range(5, 10)]
    assert "Job default/bad: Failed" in ran.stderr


ALONE = "unshare --user --map-root-user"
"""Goes on as root of a user namespace that has no other user."""


@pytest.mark.parametrize("user", [OWN, *OTHERS[:1]])
def test_another_user_is_refused_in_single_user_mode_with_the_remedy(
    folder: Path, user: str
) -> None:
    runner = Runner(folder, user, f'set -- {ALONE} "$@"' if user == OWN else "")
    manifest = simple("other", "true", securityContext={"fsGroup": 2000})
    ran = runner.run(runner.write(manifest))
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert "fsGroup: pods run as you alone here, not as group 2000; run as root, or install" in line


def test_where_user_namespaces_are_forbidden_the_command_that_allows_them_is_told(
    folder: Path,
) -> None:
    limit = "echo 0 >/proc/sys/user/max_user_namespaces"
    forbid = f'set -- {ALONE} sh -c \'{limit}; exec "$@"\' sh "$@"'
    runner = Runner(folder, OWN, forbid)
    ran = runner.run(runner.write(simple("j", "true")))
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert line.startswith("pumice run: user namespaces are not allowed here")
    assert line.endswith("`sudo sysctl -w user.max_user_namespaces=15000` allows them")
    assert not runner.left_over()


def test_a_pod_that_waits_for_something_forever_ends_the_run_with_its_reason(
    runner: Runner,
) -> None:
    manifest = simple("held", "true", volumes=[{"name": "v", "emptyDir": {}}])
    container = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "UP", "value": ".."}]
    container["volumeMounts"] = [{"name": "v", "mountPath": "/v", "subPathExpr": "$(UP)"}]
    ran = runner.run(runner.write(manifest))
    assert ran.returncode == 1
    assert (
        "Job default/held waits, and nothing else runs: held-worker-0: path .. leads out of volume v"
        in ran.stderr
    )
    assert "--nodes" not in ran.stderr


@pytest.mark.parametrize("script", ["echo up; exec sleep 4715", "echo up"], ids=["early", "kept"])
def test_the_end_of_the_node_ends_the_run_with_a_sentence(runner: Runner, script: str) -> None:
    process = runner.start(runner.write(simple("long", script)), "--keep")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "long-worker-0 | up\n"
    while script == "echo up" and "the Jobs have ended" not in process.stderr.readline():
        assert process.poll() is None
    (node,) = children(process.pid)
    (first,) = children(node)
    os.kill(first, signal.SIGKILL)
    _, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert "the first process of the node has ended, and all pods with it" in stderr.splitlines()
    assert "Traceback" not in stderr


def test_a_timeout_aborts_by_the_policies_and_a_line_each_says_what_differs_from_a_cluster(
    runner: Runner,
) -> None:
    manifest = simple("long", IDLE, restartPolicy="Always")
    (container,) = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"]
    container["readinessProbe"] = {"exec": {"command": ["false"]}}
    ran = runner.run(runner.write(manifest), "--timeout", "2s")
    assert ran.returncode == 1
    assert "--timeout: the Jobs have not ended after 2 s; aborting them" in ran.stderr
    assert "Job default/long: Aborted" in ran.stderr
    told = {line.partition(":")[0] for line in ran.stderr.splitlines()}
    assert {"mode", "limits", "images", "restart", "probes"} <= told
    assert not runner.left_over()


def test_ctrl_c_aborts_and_a_second_one_kills(runner: Runner) -> None:
    deaf = "trap '' TERM; echo up; while :; do sleep 1; done"
    file = runner.write(
        simple("good", IDLE), simple("deaf", deaf, terminationGracePeriodSeconds=600)
    )
    process = runner.start(file)
    assert process.stdout is not None
    up = {process.stdout.readline().strip() for _ in range(2)}
    assert up == {"good-worker-0 | up", "deaf-worker-0 | up"}
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline().strip() == "good-worker-0 | ending"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "killed" in stderr.splitlines()
    assert "aborting the Jobs; Ctrl-C again kills" in stderr
    wait_until(lambda: not runner.traces())


@pytest.mark.parametrize(
    ("any_runner", "moments"),
    [(OWN, ("folder", "mode", "line")), *zip(OTHERS, (("mode", "line"), ("line",)), strict=False)],
    indirect=["any_runner"],
)
def test_whenever_it_is_killed_nothing_is_left(any_runner: Runner, moments: Sequence[str]) -> None:
    file = any_runner.write(simple("long", "echo up; exec sleep 4713", 5))
    for moment in moments:
        process = any_runner.start(file)
        _wait_for(moment, any_runner, process)
        process.kill()
        process.communicate()
        wait_until(lambda: not any_runner.traces(), "no process, mount or link", 10)
        assert len(any_runner.left_over()) <= 1  # of this one alone, since each start tidies up
    if len(moments) > 1:
        file = any_runner.write(simple("short", "true"), name="short.yaml")
        assert any_runner.run(file).returncode == 0
        assert not any_runner.left_over()


def _wait_for(moment: str, runner: Runner, process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    if moment == "folder":
        wait_until(runner.left_over, "a scratch folder", SECONDS)
    elif moment == "mode":
        assert process.stderr.readline().startswith("mode: ")
    else:
        assert process.stdout.readline().endswith(" | up\n")


@pytest.mark.binaries
def test_what_is_kept_is_there_for_kubectl(runner: Runner) -> None:
    kubectl = str(Builder().ensure()["kubectl"])
    process = runner.start(runner.write(simple("j", "echo up")), "--keep")
    assert process.stderr is not None
    lines = []
    while "the Jobs have ended; Ctrl-C ends the cluster" not in lines:
        lines.append(process.stderr.readline().strip())
        assert process.poll() is None, lines
    config = next(each.partition("=")[2] for each in lines if each.startswith("export KUBECONFIG="))
    asked = [kubectl, "--kubeconfig", config, "get", "vcjob,pods", "-o", "json"]
    found = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
    assert [each["metadata"]["name"] for each in found["items"]] == ["j", "j-worker-0"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert not Path(config).exists()


def test_several_files_and_a_flow_of_jobs_on_nodes_that_split_the_machine(runner: Runner) -> None:
    def template(name: str, script: str) -> dict[str, Any]:
        made = simple(name, script)
        return {**made, "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate"}

    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        "data": {"a": "b"},
    }
    flows = [{"name": "one"}, {"name": "two", "dependsOn": {"targets": ["one"]}}]
    flow = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "flow", "namespace": "default"},
        "spec": {"flows": flows, "jobRetainPolicy": "retain"},
    }
    alone = simple("alone", 'echo "$A"')
    container = alone["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": "c"}}]
    container["command"] = ["sh", "-c", "echo $a"]
    spread = simple("spread", 'echo "$NODE"', 2)
    spread["metadata"]["namespace"] = "team"  # which no file has
    (container,) = spread["spec"]["tasks"][0]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "3"}}
    field = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    container["env"] = [{"name": "NODE", "valueFrom": field}]
    files = [
        runner.write(template("one", "echo 1"), template("two", "echo 2"), flow, name="flow.yaml"),
        runner.write(alone, spread, name="jobs.yaml"),
        runner.write(config, name="config.yaml"),
    ]
    ran = runner.run(*files, "--nodes", "2x4cpu")
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stdout.splitlines() if not line.startswith("spread")]
    assert sorted(lines) == ["alone-worker-0 | b", "flow-one-worker-0 | 1", "flow-two-worker-0 | 2"]
    placed = {*ran.stdout.splitlines()} - {*lines}
    assert {line.partition(" | ")[2] for line in placed} == {"node1", "node2"}
    assert lines.index("flow-one-worker-0 | 1") < lines.index("flow-two-worker-0 | 2")


MOUNTS = """
mount --bind /etc/hosts /etc/hosts
mount -t tmpfs none /var/spool
for folder in foreign foreign/below; do
    mkdir $folder
    mount -t tmpfs none $folder
    echo of the machine >$folder/file
done
mkdir data
for folder in data foreign foreign/below; do
    mknod -m 666 $folder/null c 1 3 || { echo >$folder/null; mount --bind /dev/null $folder/null; }
done 2>/dev/null
chmod 777 foreign foreign/below
"""
"""File systems below others, each with a device, which users who may make none mount."""
LISTENING = """
import os, socket, sys
for path in ("foreign/socket", "foreign/below/socket"):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    os.chmod(path, 0o777)
    os.set_inheritable(listening.detach(), True)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Goes on as the program that it is given, which listens at a socket on each of two file systems."""
TRIED = """
cat /etc/new/c/a; echo x >/etc/y && cat /etc/y; test -s /etc/passwd
echo x >/data/null || echo no device
for folder in foreign foreign/below; do
    cat $folder/file
    python3 -c "import socket; socket.socket(socket.AF_UNIX).connect('$folder/socket')" || echo no answer
    python3 -c "open('$folder/null', 'r+b', buffering=0)" || echo no device
done 2>/dev/null
"""


@pytest.mark.parametrize("alone", ["", ALONE], ids=["this mode", "single user"])
def test_file_systems_that_are_mounted_below_others_take_mounts_and_give_no_socket_and_no_device(
    folder: Path, alone: str
) -> None:
    (folder / "listen").write_text(LISTENING)
    runner = Runner(folder, OWN, f'{MOUNTS}set -- {sys.executable} listen {alone} "$@"')
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        "data": {"a": "b\n"},
    }
    manifest = simple("j", TRIED)
    spec = manifest["spec"]["tasks"][0]["template"]["spec"]
    spec["volumes"] = [
        {"name": "c", "configMap": {"name": "c"}},
        {"name": "data", "hostPath": {"path": f"{folder}/data"}},
    ]
    spec["containers"][0]["volumeMounts"] = [
        {"name": "c", "mountPath": "/etc/new/c"},
        {"name": "data", "mountPath": "/data"},
    ]
    ran = runner.run(runner.write(config, manifest), "--allow-host-path", "data")
    assert ran.returncode == 0, ran.stderr
    lines = [line.removeprefix("j-worker-0 | ") for line in ran.stdout.splitlines()]
    assert lines[:2] == ["b", "x"]
    assert re.search(r"/data/null: (Permission denied|Operation not permitted)", lines[2]), lines
    assert lines[3:] == ["no device", *["of the machine", "no answer", "no device"] * 2]


def test_two_hundred_pods_run_at_a_time(runner: Runner) -> None:
    manifest = simple("many", "exec sleep 3", 200)
    ran = runner.run(runner.write(manifest))
    assert ran.returncode == 0, ran.stderr
    assert "Job default/many: Completed: 200 of 200 pods succeeded" in ran.stderr
    assert not runner.left_over()
    assert not runner.traces()
