"""`pumice run` in processes of its own: Jobs that really run on this machine, their ends, and what is left when it is killed."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.cli.running import SECONDS, children, kubectl_path
from tests.kit.builders import job, task
from tests.kit.waiting import wait_until

USER = 1000
AS_USER = (
    *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"),
    # The interpreter of the tests may lie where only its owner may read.
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
)
IDLE = "trap 'echo ending; exit 0' TERM; echo up; sleep 1000 & wait"


class Runner:
    """Runs `pumice run` on files in a folder of its own.

    Attributes:
        folder: The folder, which the user of the process owns.
        state: Where the process keeps its scratch folders.
        is_other_user: Whether the process is not of the user of the tests.
    """

    def __init__(self, folder: Path, prefix: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.is_other_user = prefix == AS_USER
        self._prefix = prefix

    def write(self, *objects: Any, name: str = "job.yaml") -> str:
        (self.folder / name).write_text(yaml.safe_dump_all(objects))
        return name

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self._prefix, sys.executable, "-m", "pumice", "run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=os.environ
            | {
                "XDG_STATE_HOME": str(self.state),
                "PYTHONPATH": str(Path(__file__).parents[3]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": str(self.folder),
            },
        )

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=2 * SECONDS)
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def left_over(self) -> list[str]:
        """Scratch folders."""
        return [each.name for each in self.state.glob("pumice/run/pumice-*")]

    def traces(self) -> list[str]:
        """Processes that see a scratch folder, as all of a node do that is not gone."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                told = (each / "mountinfo").read_text() + (each / "cmdline").read_text()
                if str(self.state) in told:
                    found.append((each / "cmdline").read_text().replace("\0", " "))
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = Path("/var/tmp") / f"pumice-run-{os.getpid()}-{tmp_path.name}"
    made.mkdir()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def runner(folder: Path) -> Runner:
    return Runner(folder)


@pytest.fixture(params=["as the tests' user", "single user"])
def any_runner(request: pytest.FixtureRequest, folder: Path) -> Runner:
    """As the user of the tests, and as one who is not root."""
    if request.param == "as the tests' user":
        return Runner(folder)
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user")
    os.chown(folder, USER, USER)
    return Runner(folder, AS_USER)


def simple(name: str, script: str, replicas: int = 1, **fields: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "command": ["bash", "-c", script]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, **fields}
    return job(name, [task("worker", replicas, spec={**spec, "containers": [container]})])


def test_a_gang_runs_wired_and_is_seen(any_runner: Runner) -> None:
    script = 'for i in {1..100}; do getent hosts $(hostname).pair && break; sleep 0.1; done; cat note; echo "$VC_TASK_INDEX"; echo told >&2'
    (any_runner.folder / "note").write_text("of the caller's folder\n")
    manifest = simple("pair", script, 2)
    manifest["spec"]["plugins"] = {"svc": [], "env": []}
    ran = any_runner.run(any_runner.write(manifest))
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    for index in range(2):
        pod = f"pair-worker-{index}"
        own = [line.removeprefix(f"{pod} | ") for line in lines if line.startswith(f"{pod} | ")]
        assert re.fullmatch(rf"10\.244\.0\.\d+ +{pod}\.pair\.default.*", own[0]), own
        assert own[1:] == ["of the caller's folder", str(index), "told"]
    assert "images: any: programs are this machine's; --image NAME=DIR" in ran.stderr
    assert "Job default/pair: Completed: 2 of 2 pods succeeded" in ran.stderr
    assert re.search(r"^mode: (full|single user) \(", ran.stderr, re.MULTILINE)
    assert not any_runner.left_over()


def test_a_failed_pod_is_told_with_code_reason_and_last_lines(runner: Runner) -> None:
    script = "for i in {1..9}; do echo line $i; done; echo because >/dev/termination-log; exit 7"
    ran = runner.run(runner.write(simple("bad", script)))
    assert ran.returncode == 1
    told = "bad-worker-0 failed: container main ended with exit code 7 (Error): because"
    lines = ran.stderr.splitlines()
    assert lines[lines.index(told) + 1 :][:5] == [f"  line {number}" for number in range(5, 10)]
    assert "Job default/bad: Failed" in ran.stderr


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "there is no Job of Volcano in job.yaml, and no JobFlow"),
        (job("bad", []), "Job/default/bad is refused"),
        (simple("net", "true", hostNetwork=True), "spec.tasks[0].template.spec.hostNetwork: pods have networks of their own"),
        (simple("huge", "true", 100_000), "the files ask for 100000 pods; a run has at most 1000 of them: lower `replicas`"),
        (
            simple("needs", "true", volumes=[{"name": "c", "secret": {"secretName": "none"}}]),
            "spec.tasks[0].template.spec.volumes[0].secret: there is no Secret none; add it to the files",
        ),
    ],
    ids=["nothing to run", "refused by admission", "not there on this machine", "too many pods", "an object that no file has"],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_code_2(
    runner: Runner, manifest: dict[str, Any], expected: str
) -> None:
    ran = runner.run(runner.write(manifest))
    assert ran.returncode == 2
    assert expected in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_another_user_is_refused_in_single_user_mode_with_the_remedy(folder: Path) -> None:
    if os.geteuid() != 0 or shutil.which("newuidmap"):
        pytest.skip("this needs root, which becomes a user without newuidmap")
    os.chown(folder, USER, USER)
    runner = Runner(folder, AS_USER)
    manifest = simple("other", "true", securityContext={"fsGroup": 2000})
    ran = runner.run(runner.write(manifest))
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert "fsGroup: pods run as you alone here, not as group 2000; run as root, or install" in line


def test_where_user_namespaces_are_forbidden_the_command_that_allows_them_is_told(
    folder: Path,
) -> None:
    forbid = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    runner = Runner(folder, ("unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"))
    ran = runner.run(runner.write(simple("j", "true")))
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert line.startswith("pumice run: user namespaces are not allowed here")
    assert line.endswith("`sudo sysctl -w user.max_user_namespaces=15000` allows them")
    assert not runner.left_over()


def test_a_folder_that_pods_may_mount_is_named_in_any_way(runner: Runner) -> None:
    (runner.folder / "data").mkdir()
    path = str(runner.folder / "data" / "part")
    volume = {"name": "d", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
    file = runner.write(simple("j", "true", volumes=[volume]))
    ran = runner.run(
        file, "--dry-run", "--allow-host-path", f"data/../../{runner.folder.name}/data"
    )
    assert ran.returncode == 0, ran.stderr
    assert "j-worker-0" in ran.stdout


def test_what_does_not_fit_waits_and_ends_with_its_reason(runner: Runner) -> None:
    manifest = simple("big", "true", 2)
    container = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "3"}}
    ran = runner.run(runner.write(manifest), "--nodes", "2x2cpu")
    assert ran.returncode == 1
    assert "Job default/big waits, and nothing else runs: " in ran.stderr
    assert "needs 3 cpu on one node; the largest has 2" in ran.stderr
    assert ran.stdout == ""


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


def test_the_end_of_the_node_ends_the_run_with_a_sentence(runner: Runner) -> None:
    process = runner.start(runner.write(simple("long", "echo up; exec sleep 4715")))
    assert process.stdout is not None
    assert process.stdout.readline() == "long-worker-0 | up\n"
    (node,) = children(process.pid)
    (first,) = children(node)
    os.kill(first, signal.SIGKILL)
    _, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert "the first process of the node has ended, and all pods with it" in stderr.splitlines()
    assert "Traceback" not in stderr


def test_nodes_split_the_machine(runner: Runner) -> None:
    manifest = simple("spread", 'echo "$NODE"', 2)
    container = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "3"}}
    field = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    container["env"] = [{"name": "NODE", "valueFrom": field}]
    ran = runner.run(runner.write(manifest), "--nodes", "2x4cpu")
    assert ran.returncode == 0, ran.stderr
    assert {line.partition(" | ")[2] for line in ran.stdout.splitlines()} == {"node1", "node2"}


def test_a_dry_run_places_and_starts_nothing(runner: Runner) -> None:
    ran = runner.run(runner.write(simple("pair", "touch ran", 2)), "--dry-run")
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[:3] for line in ran.stdout.splitlines()] == [
        ["POD", "NODE", "IMAGE"],
        ["pair-worker-0", "node1", "any"],
        ["pair-worker-1", "node1", "any"],
    ]
    assert not list(runner.state.glob("**"))


def test_a_timeout_aborts_by_the_policies(any_runner: Runner) -> None:
    ran = any_runner.run(any_runner.write(simple("long", IDLE)), "--timeout", "4s")
    assert ran.returncode == 1
    assert "--timeout: the Jobs have not ended after 4 s; aborting them" in ran.stderr
    assert "Job default/long: Aborted" in ran.stderr
    assert not any_runner.left_over()


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


def test_whenever_it_is_killed_nothing_is_left(any_runner: Runner) -> None:
    file = any_runner.write(simple("long", "echo up; exec sleep 4713", 5))
    first = any_runner.start(file)
    begun = time.monotonic()
    assert first.stdout is not None
    assert first.stdout.readline()
    seconds = time.monotonic() - begun
    first.kill()
    first.communicate()
    for part in range(1, 5):
        process = any_runner.start(file)
        time.sleep(seconds * part / 4)
        process.kill()
        process.communicate()
        wait_until(lambda: not any_runner.traces(), "no process, mount or link", 10)
    assert len(any_runner.left_over()) <= 1  # of the last one alone, since each start tidies up
    assert (
        any_runner.run(any_runner.write(simple("short", "true"), name="short.yaml")).returncode == 0
    )
    assert not any_runner.left_over()


def test_what_is_kept_is_there_for_kubectl(runner: Runner) -> None:
    kubectl = kubectl_path()
    if kubectl is None:
        pytest.skip("there is no kubectl")
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


def test_what_differs_from_a_cluster_is_said_in_a_line_each(runner: Runner) -> None:
    manifest = simple("j", IDLE, restartPolicy="Always")
    container = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["readinessProbe"] = {"exec": {"command": ["false"]}}
    ran = runner.run(runner.write(manifest), "--timeout", "3s")
    assert ran.returncode == 1
    told = {line.partition(":")[0] for line in ran.stderr.splitlines()}
    assert {"mode", "limits", "images", "restart", "probes"} <= told


def test_several_files_and_a_flow_of_jobs(runner: Runner) -> None:
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
    files = [
        runner.write(template("one", "echo 1"), template("two", "echo 2"), flow, name="flow.yaml"),
        runner.write(alone, name="alone.yaml"),
        runner.write(config, name="config.yaml"),
    ]
    ran = runner.run(*files)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert sorted(lines) == ["alone-worker-0 | b", "flow-one-worker-0 | 1", "flow-two-worker-0 | 2"]
    assert lines.index("flow-one-worker-0 | 1") < lines.index("flow-two-worker-0 | 2")


def test_a_root_in_place_of_an_image(any_runner: Runner) -> None:
    lower, upper = any_runner.folder / "lower", any_runner.folder / "upper"
    shell = shutil.which("dash") or "/bin/sh"
    needed = subprocess.run(["ldd", shell], capture_output=True, text=True, check=True).stdout
    for file in [shell, *re.findall(r"(/\S+) \(", needed)]:
        place = lower / ("bin/sh" if file == shell else file.lstrip("/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(file).resolve(), place)
    for each in (lower, upper):
        (each / "etc").mkdir(parents=True)
        (each / "etc/layer").write_text(f"{each.name}\n")
    if any_runner.is_other_user:
        subprocess.run(["chown", "-R", f"{USER}:{USER}", lower, upper], check=True)
    manifest = simple("j", "")
    container = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    script = "read x </etc/layer; echo $x $PWD; echo changed >/etc/layer; echo /*"
    container["command"] = ["sh", "-c", script]
    ran = any_runner.run(any_runner.write(manifest), "--image", f"any={lower}:{upper}")
    assert ran.returncode == 0, ran.stderr
    first, second = (line.partition(" | ")[2] for line in ran.stdout.splitlines())
    assert first == "upper /"
    assert {"/bin", "/dev", "/etc", "/proc"} <= set(second.split())
    assert "/home" not in second
    assert (upper / "etc/layer").read_text() == "upper\n"
    assert "images:" not in ran.stderr


def test_folders_in_which_files_are_mounted_take_further_mounts(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root mounts")
    mount = 'mount --bind /etc/hosts /etc/hosts && mount -t tmpfs none /var/spool && exec "$@"'
    runner = Runner(folder, ("unshare", "--mount", "sh", "-c", mount, "sh"))
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        "data": {"a": "b\n"},
    }
    manifest = simple("j", "cat /etc/new/c/a; echo x >/etc/y && cat /etc/y; test -s /etc/passwd")
    spec = manifest["spec"]["tasks"][0]["template"]["spec"]
    spec["volumes"] = [{"name": "c", "configMap": {"name": "c"}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "c", "mountPath": "/etc/new/c"}]
    ran = runner.run(runner.write(config, manifest))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["j-worker-0 | b", "j-worker-0 | x"]


def test_two_hundred_pods_run_at_a_time(runner: Runner) -> None:
    manifest = simple("many", "exec sleep 3", 200)
    ran = runner.run(runner.write(manifest))
    assert ran.returncode == 0, ran.stderr
    assert "Job default/many: Completed: 200 of 200 pods succeeded" in ran.stderr
    assert not runner.left_over()
    assert not runner.traces()
