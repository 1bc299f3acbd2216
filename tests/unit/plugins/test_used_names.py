"""One look at what templates have: it may take something for there that is not, never the other way."""

from typing import Any
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st

from pumice.api.jobs import Job, JobSpec, Task
from pumice.plugins.used_names import used_names
from tests.kit.builders import Raw

NAMES = st.sampled_from(["A", "AB", "B", "a\nb", "VC_X_NUM", "", 1, None, True])
PATHS = st.sampled_from(["/", "/etc", "/etc/", "/etc/mpi", "/etc/mpi//", "/etcetera", "", 7, None])
ODD = st.sampled_from([None, "text", 5, {"name": "A"}, ["A"]])


def entries(member: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    entry = st.fixed_dictionaries({}, optional={member: values, "other": NAMES})
    return st.one_of(st.lists(st.one_of(entry, ODD), max_size=4), ODD)


CONTAINERS = st.fixed_dictionaries(
    {}, optional={"env": entries("name", NAMES), "volumeMounts": entries("mountPath", PATHS)}
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "volumes": entries("name", NAMES),
        "containers": st.one_of(st.lists(st.one_of(CONTAINERS, ODD), max_size=2), ODD),
        "initContainers": st.lists(CONTAINERS, max_size=1),
    },
)


def dicts(found: Any) -> list[Raw]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


@given(st.lists(SPECS, max_size=3))
def test_nothing_that_is_there_is_overlooked(specs: list[Raw]) -> None:
    job = Job(spec=JobSpec(tasks=[Task(name="t", template={"spec": spec}) for spec in specs]))
    found = used_names(job)
    for spec in specs:
        for volume in dicts(spec.get("volumes")):
            if isinstance(name := volume.get("name"), str):
                assert found.may_have(name, ())
        for container in (*dicts(spec.get("containers")), *dicts(spec.get("initContainers"))):
            for variable in dicts(container.get("env")):
                if isinstance(name := variable.get("name"), str):
                    assert found.may_set([name])
                    assert found.may_set_any(name[:2])
            for mount in dicts(container.get("volumeMounts")):
                if isinstance(path := mount.get("mountPath"), str) and path:
                    assert found.may_have("no such volume", [path.rstrip("/") or "/"])


def test_every_job_is_asked_for_itself() -> None:
    one, other = (
        Job(spec=JobSpec(tasks=[Task(name="t", template={"spec": {"volumes": [{"name": name}]}})]))
        for name in ("one", "other")
    )
    for _ in range(2):
        assert used_names(one).may_have("one", ())
        assert not used_names(one).may_have("other", ())
        assert not used_names(other).may_have("one", ["/data"])
        assert used_names(other).may_have("other", ())
    assert not used_names(one).may_set(["TF_CONFIG"])
    assert not used_names(one).may_set_any("VC_")


def test_a_job_is_freed_when_its_review_ends() -> None:
    job = Job(spec=JobSpec(tasks=[Task(name="t", template={"spec": {}})]))
    used_names(job)
    held = ref(job)
    del job
    assert held() is None
