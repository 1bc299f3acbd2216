"""The whole way in one process: submit a TensorFlow Job, see it admitted, wired, placed and explained.

Starts what `pumice dev` starts, with nodes of 2, 1 and 4 CPUs, submits two Jobs, through kubectl where
there is one, and prints what happened. Ends by itself; the exit code is 0 only if all went as the
example in `docs/design/task-topology-plugin.md` of Volcano says: a parameter server and its workers share a
node, the two servers do not.
"""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.kinds import JOB, POD, POD_GROUP, Kind
from pumice.api.names import pod_group_name
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.cli.development.dev_cluster import DevCluster, dev_cluster
from pumice.cli.development.dev_nodes import read_nodes
from pumice.cli.files.manifests import read_objects
from pumice.cli.live.explanation_text import current_condition, sentence
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.webhook.rules.differences import differences

EXAMPLES = Path(__file__).resolve().parent
NODES = "2,1,4"
NAMESPACE = "default"

PATIENCE = 10.0
"""Seconds after which something that should have happened counts as not happening."""

TOGETHER = (("train-ps-0", "train-worker-0", "train-worker-2"), ("train-ps-1", "train-worker-1"))
"""Pods that must share a node."""


class UnexpectedError(Exception):
    """The demo did not go as the documents say."""


class Demo:
    """One run of the demo."""

    def __init__(self, console: Console, cluster: DevCluster, client: Client) -> None:
        """Prepare to watch what happens."""
        self._console = console
        self._cluster = cluster
        self._client = client
        self._jobs = WatchCache(client, JOB, Job)
        self._groups = WatchCache(client, POD_GROUP, PodGroup)
        self._pods = WatchCache(client, POD, Pod)
        self._steps: list[tuple[float, str]] = []
        self._numbers = iter(range(1, 10))

    async def run(self, submit: "Submit") -> None:
        """Go through all of it.

        Raises:
            UnexpectedError: Something went otherwise than the documents say.
        """
        self._jobs.subscribe(self._note_job)
        self._groups.subscribe(self._note_group)
        watches = [
            asyncio.create_task(each.run()) for each in (self._jobs, self._groups, self._pods)
        ]
        try:
            self._headline("A cluster in this process")
            self._say(f"API server {self._cluster.api.url}; CPUs: node1 2, node2 1, node3 4")
            await self._train(submit)
            await self._too_big(submit)
        finally:
            for watch in watches:
                watch.cancel()

    async def _train(self, submit: "Submit") -> None:
        manifest = EXAMPLES / "tensorflow.yaml"
        self._headline(f"Submit {manifest.name}: 2 ps, 4 workers, one gang")
        self._say(await submit(manifest))

        self._headline("The Job as admitted")
        [before] = read_objects([manifest])
        after = await self._client.get(JOB, "train", NAMESPACE)
        self._say(yaml.safe_dump(_user_part(after), sort_keys=False, width=120).rstrip())
        self._say("\nof which admission changed:")
        for change in differences(_user_part(before), _user_part(after), ""):
            self._say(f"  {change}")

        self._headline("Where the pods went, and the TF_CONFIG they got")
        await self._until(lambda: len(self._placed("train")) == 6, "all six pods have a node")
        pods = self._placed("train")
        self._show_pods(pods)
        _check_places({pod.metadata.name: pod.spec.node_name for pod in pods})

        self._headline("The way of the Job and of its PodGroup")
        await self._until(lambda: self._phase("train") == "Completed", "the Job is Completed")
        start = self._steps[0][0]
        for moment, what in self._steps:
            self._say(f"{moment - start:5.2f} s  {what}")
        job = self._jobs.get("train", NAMESPACE)
        if job is not None:
            self._say(sentence(job, None, pods))

    async def _too_big(self, submit: "Submit") -> None:
        manifest = EXAMPLES / "does-not-fit.yaml"
        self._headline(f"Submit {manifest.name}: 2 pods of 3 CPUs, of which one would fit")
        self._say(await submit(manifest))
        await self._until(
            lambda: self._reason("too-big") != "", "the second Job has a reason to wait"
        )
        self._say(self._reason("too-big"))
        if self._placed("too-big"):
            raise UnexpectedError("a gang that does not fit as a whole was placed in part")

    def _show_pods(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            stored = self._cluster.api.store.get(POD, pod.metadata.name, NAMESPACE)
            self._say(f"{pod.metadata.name:<15} {pod.spec.node_name}  {_tf_config(stored)}")

    # What is seen

    def _note_job(self, old: Job | None, new: Job | None) -> None:
        if new is None:
            return
        before = old.status.state.phase if old is not None else None
        if new.status.state.phase != before:
            self._steps.append((time.monotonic(), f"Job {new.status.state.phase or 'created'}"))

    def _note_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        if new is None:
            return
        before = old.status.phase if old is not None else None
        if new.status.phase != before:
            self._steps.append((time.monotonic(), f"PodGroup {new.status.phase}"))

    def _phase(self, name: str) -> str:
        job = self._jobs.get(name, NAMESPACE)
        return job.status.state.phase if job is not None else ""

    def _own(self, name: str) -> list[Pod]:
        own = [pod for pod in self._pods.values() if pod.metadata.label(keys.JOB_NAME) == name]
        return sorted(own, key=lambda pod: pod.metadata.name)

    def _placed(self, name: str) -> list[Pod]:
        return [pod for pod in self._own(name) if pod.spec.node_name]

    def _reason(self, name: str) -> str:
        """Why a Job waits, once the scheduler has looked at all of its pods."""
        job = self._jobs.get(name, NAMESPACE)
        if job is None or len(self._own(name)) < job.replicas:
            return ""
        group = self._groups.get(pod_group_name(name, job.metadata.uid), NAMESPACE)
        condition = current_condition(group)
        if condition is None or condition.message not in job.status.state.message:
            return ""
        return sentence(job, group, self._own(name))

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise UnexpectedError(f"within {PATIENCE:.0f} s it did not happen that {what}")
            if self._cluster.components.done():
                raise UnexpectedError("a component failed")
            await asyncio.sleep(0.02)

    # What is shown

    def _headline(self, text: str) -> None:
        self._console.print(f"\n{next(self._numbers)}. {text}", style="bold cyan")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=not self._console.is_terminal)


class Submit:
    """Submits manifests: through kubectl where there is one that works, else by itself."""

    def __init__(self, client: Client, kubectl: str | None, kubeconfig: Path) -> None:
        """Choose the way.

        Args:
            client: Used where there is no kubectl.
            kubectl: Path of kubectl.
            kubeconfig: For kubectl.
        """
        self._client = client
        self._kubectl = kubectl
        self._kubeconfig = kubeconfig

    async def __call__(self, manifest: Path) -> str:
        """Submit the objects of a file; answers with what there is to say about it."""
        if self._kubectl is None:
            return await self._create(manifest)
        command = ["apply", "-f", str(manifest), "--cache-dir", str(self._kubeconfig.parent)]
        process = await asyncio.create_subprocess_exec(
            self._kubectl,
            *command,
            env=os.environ | {"KUBECONFIG": str(self._kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()
            said = b"no answer"
        shown = f"$ kubectl apply -f examples/{manifest.name}\n{said.decode().strip()}"
        if process.returncode != 0:
            raise UnexpectedError(f"{self._kubectl} failed:\n{shown}")
        return shown

    async def _create(self, manifest: Path) -> str:
        said = []
        for obj in read_objects([manifest]):
            created = await self._client.create(_KINDS[obj["kind"]], obj, NAMESPACE)
            said.append(f"{obj['kind']} {created['metadata']['name']} created")
        return "\n".join(["no kubectl found, submitted through the Python client", *said])


_KINDS: dict[str, Kind] = {JOB.kind: JOB}


def _kubectl() -> str | None:
    """The kubectl on PATH, or the one that `make controlplane` has built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    built = sorted(cache.glob("pumice/controlplane/*/bin/kubectl"))
    return shutil.which("kubectl") or (str(built[-1]) if built else None)


def _user_part(job: dict[str, Any]) -> dict[str, Any]:
    """What the user wrote of a Job, and what admission may change."""
    metadata = job["metadata"]
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith("kubectl.kubernetes.io/")
    }
    return {"metadata": {"name": metadata["name"], "annotations": annotations}, "spec": job["spec"]}


def _tf_config(pod: dict[str, Any] | None) -> str:
    for variable in (pod or {"spec": {"containers": [{}]}})["spec"]["containers"][0].get("env", ()):
        if variable["name"] == "TF_CONFIG":
            return str(variable["value"])
    raise UnexpectedError("a pod has no TF_CONFIG")


def _check_places(nodes: dict[str, str]) -> None:
    for group in TOGETHER:
        if len({nodes[name] for name in group}) != 1:
            raise UnexpectedError(f"{', '.join(group)} should share a node, found {nodes}")
    if nodes["train-ps-0"] == nodes["train-ps-1"]:
        raise UnexpectedError(f"the two servers should be apart, found {nodes}")


@contextlib.contextmanager
def _kubeconfig(cluster: DevCluster) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pumice-demo-") as folder:
        file = Path(folder, "kubeconfig")
        file.touch(0o600)
        file.write_text(cluster.api.kubeconfig())
        yield file


@contextlib.asynccontextmanager
async def _demo(console: Console) -> AsyncIterator[tuple[Demo, Submit]]:
    async with dev_cluster(read_nodes(NODES)) as cluster:
        with _kubeconfig(cluster) as kubeconfig:
            client = cluster.client
            yield Demo(console, cluster, client), Submit(client, _kubectl(), kubeconfig)


async def main() -> int:
    """Run the demo; answers with the exit code."""
    console = Console(highlight=False)
    begun = time.monotonic()
    try:
        async with _demo(console) as (demo, submit):
            await demo.run(submit)
    except UnexpectedError as error:
        Console(stderr=True, highlight=False).print(f"\nNot as expected: {error}", style="bold red")
        return 1
    seconds = time.monotonic() - begun
    console.print(f"\nAll as the documents say, in {seconds:.1f} s.", style="bold green")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
