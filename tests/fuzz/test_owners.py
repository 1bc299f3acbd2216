"""Objects of other controllers that name plugins, mutated: whatever they say, admission and the controller have an answer.

Every user who may create a Job, a JobSet or a LeaderWorkerSet writes their sizes and annotations.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.controller.other_owners.wiring import plan_wiring
from pumice.plugins import builtin
from pumice.plugins.other_owners import OWNERS, OwnerWirings, place
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.fuzz.judging import DEADLINE_SECONDS, checked
from tests.fuzz.mutations import NUMBERS, TEXTS, Mutator
from tests.unit.plugins.test_other_owners import KINDS, manifest, pod_of
from tests.unit.webhook.reviewing import request, reraise, review

Raw = dict[str, Any]

PATH = "/pods/mutate"
LONGEST_MESSAGE = 20_000
BOMBS = (
    "{a: &a [x,x,x,x,x,x,x,x,x], b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], c: [*b,*b,*b,*b,*b,*b,*b,*b,*b]}",
    "&a {svc: *a}",
    "{<<: {svc: []}, svc: []}",
    "{0x" + "f" * 5_000 + ": []}",
    "svc: " + "9" * 5_000,
    "[" * 9_000,
    "a=" + "9" * 5_000,
    "x" * 20_000,
)
PLUGINS = ("svc", "mpi", "ray", "tensorflow", "pytorch", "svc,ssh,env", *BOMBS, *TEXTS)
SIZES = [each for each in (*NUMBERS, 10**30, 10**4_000) if isinstance(each, int)]
SHAPES: tuple[Raw, ...] = (
    {"kind": "Job", "name": "train", "completions": 3, "plugins": "mpi", "tasks": "a=1,b"},
    {"kind": "JobSet", "name": "train", "jobs": [["a", 2, 3, "mpi"], ["b", 1, 2, "svc"]]},
    {"kind": "LeaderWorkerSet", "name": "train", "groups": 2, "size": 3, "plugins": "mpi", "surge": "50%"},
)  # fmt: skip
PLACES: Raw = {
    "Job": {"index": 1},
    "JobSet": {"group": "a", "job": 1, "index": 1},
    "LeaderWorkerSet": {"number": 1, "index": 1},
}
SIZED = ("completions", "parallelism", "replicas", "size", "maxSurge")
MUTATOR_SEEDS = st.integers(0, 10**9).map(str)


def in_time(what: str, work: Callable[[], object]) -> Any:
    started = time.process_time()
    found = work()
    seconds = time.process_time() - started
    assert seconds < DEADLINE_SECONDS, f"{what} took {seconds:.3f} s of a processor"
    return found


def answered(shape: Raw, owner: Raw) -> None:
    """Have everything that reads such an object read it."""
    kind = KINDS[shape["kind"]]
    admission = Admission(AdmissionSettings(), Snapshot(), builtin(), on_crash=reraise)
    judged = in_time("lint", lambda: judge(admission, owner))
    assert len(str(judged.errors)) < LONGEST_MESSAGE
    try:
        read = msgspec.convert(owner, OWNERS[kind])
    except msgspec.ValidationError:
        return  # no watch cache takes it
    state = [owner] if owner.get("kind") == kind.kind else []
    admission = Admission(AdmissionSettings(), Snapshot.of(state), builtin(), on_crash=reraise)
    pod = pod_of(shape, PLACES[shape["kind"]])
    body = review(request(PATH, pod))
    checked(body, in_time("the review of a pod", lambda: admission.answer(PATH, body)).body)
    wirings = OwnerWirings(builtin())
    plan = in_time("the controller", lambda: plan_wiring(read, wirings, []))
    assert "Traceback" not in str(plan)


def sized(here: Any, draw: st.DrawFn) -> None:
    """Put other sizes and other annotations everywhere into an object."""
    if isinstance(here, list):
        for each in here:
            sized(each, draw)
    if not isinstance(here, dict):
        return
    for key, value in here.items():
        if key in SIZED and draw(st.booleans()):
            here[key] = draw(st.sampled_from([*SIZES, "9" * 5_000 + "%"]))
        elif key in ("pumice.dev/plugins", "pumice.dev/tasks") and draw(st.booleans()):
            here[key] = draw(st.sampled_from(PLUGINS))
        else:
            sized(value, draw)


@st.composite
def owners(draw: st.DrawFn) -> tuple[Raw, Raw]:
    shape = draw(st.sampled_from(SHAPES))
    owner = manifest(shape)
    sized(owner["spec"], draw)
    return shape, owner


@settings(deadline=None)
@given(owners())
def test_any_size_and_any_annotation_gets_an_answer_in_time(made: tuple[Raw, Raw]) -> None:
    answered(*made)


@settings(deadline=None)
@given(st.sampled_from(SHAPES), MUTATOR_SEEDS)
def test_any_mutated_owner_gets_an_answer_in_time(shape: Raw, seed: str) -> None:
    bodies = [msgspec.json.encode({"request": {"object": manifest(each)}}) for each in SHAPES]
    mutator = Mutator(seed, bodies)
    for body in bodies:
        try:
            found = msgspec.json.decode(mutator.mutated(body))["request"]["object"]
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
        if isinstance(found, dict) and found.get("kind") == shape["kind"]:
            answered(shape, found)


@given(st.sampled_from(["1", "9" * 5_000, "0" * 5_000, "\u0661", "-1", ""]))
def test_any_index_of_a_pod_is_read(index: str) -> None:
    for kind, labels in (
        (kinds.INDEXED_JOB, ()),
        (kinds.LEADER_WORKER_SET, ("group-index", "worker-index")),
    ):
        shape = next(each for each in SHAPES if each["kind"] == kind.kind)
        pod = pod_of(shape, PLACES[shape["kind"]])
        metadata = pod["metadata"]
        metadata["annotations"]["batch.kubernetes.io/job-completion-index"] = index
        for each in labels:
            metadata["labels"][f"leaderworkerset.sigs.k8s.io/{each}"] = index
        assert place(pod) is not None
