"""A template that was in order is not judged again; whatever was not, is told each time."""

from typing import Any

import pytest

from pumice.api import suggestions
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.rules.case import KnownTemplates
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.site import Site
from pumice.webhook.rules.terms import Terms
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import Raw, job, task
from tests.unit.webhook.reviewing import answer, request

PATH = "/jobs/validate"
NO_IMAGE = {"containers": [{"name": "main"}]}
MISSPELT = {"containers": [{"name": "main", "image": "busybox", "ressources": {}}]}


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the templates that were judged, and not merely known."""
    paths: list[str] = []

    def watched(site: Site, template: Raw) -> None:
        paths.append(site.path)
        pod_template(site, template)

    monkeypatch.setattr(job_checks, "pod_template", watched)
    return paths


def admission(**settings: Any) -> Admission:
    return Admission(AdmissionSettings(**settings), Snapshot.of([]), builtin())


def review(judge: Admission, spec: Raw | None = None, **about: Any) -> Raw:
    """The answer to a Job of one task with these fields in its pod's spec."""
    return answer(judge, PATH, request(PATH, job(tasks=[task(spec=spec)], **about)))


def test_what_was_in_order_is_known_in_every_job(judged: list[str]) -> None:
    judge = admission()
    assert review(judge, name="one")["allowed"]
    assert review(judge, name="two", namespace="other")["allowed"]
    assert judged == ["spec.tasks[0].template"]
    two = job(tasks=[task("a"), task("b", spec={"hostNetwork": True}), task("c")])
    assert answer(judge, PATH, request(PATH, two))["allowed"]
    assert judged == ["spec.tasks[0].template", "spec.tasks[1].template"]


def test_settings_without_levels_of_rules_know_templates_too(judged: list[str]) -> None:
    """The webhook has these where it is started without settings."""
    judge = Admission(Terms(), Snapshot.of([]), builtin())
    assert review(judge, name="one")["allowed"]
    assert review(judge, name="two")["allowed"]
    assert judged == ["spec.tasks[0].template"]


def test_another_judge_knows_nothing_of_it(judged: list[str]) -> None:
    review(admission())
    review(admission())
    assert len(judged) == 2


@pytest.mark.parametrize(("spec", "word"), [(NO_IMAGE, "TPL-IMAGE"), (MISSPELT, "TPL-UNKNOWN")])
def test_what_was_not_is_reported_each_time(judged: list[str], spec: Raw, word: str) -> None:
    judge = admission()
    first, second = review(judge, spec), review(judge, spec)
    assert word in str(first)
    assert first == second
    assert len(judged) == 2


def test_what_was_judged_without_suggestions_is_judged_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = admission()
    other = {"containers": [{"name": "main", "image": "busybox", "envv": []}]}
    both = job(tasks=[task("a", spec=other), task("b", spec=MISSPELT)])
    with monkeypatch.context() as patch:
        patch.setattr(suggestions, "BUDGET", 1)
        answer(judge, PATH, request(PATH, both))
    assert "TPL-UNKNOWN" in str(review(judge, MISSPELT))


def test_namespaces_with_their_own_levels_judge_for_themselves() -> None:
    lenient = admission(namespaces={"lenient": {"TPL-IMAGE": "off"}})
    assert review(lenient, NO_IMAGE, namespace="lenient")["allowed"]
    assert not review(lenient, NO_IMAGE)["allowed"]
    strict = admission(rules={"TPL-IMAGE": "off"}, namespaces={"strict": {"TPL-IMAGE": "enforce"}})
    assert review(strict, NO_IMAGE)["allowed"]
    assert review(strict, NO_IMAGE)["allowed"]
    assert not review(strict, NO_IMAGE, namespace="strict")["allowed"]


def test_what_only_looks_alike_is_judged() -> None:
    judge = admission()
    port = {"name": "main", "image": "busybox", "ports": [{"containerPort": 1}]}
    assert review(judge, {"containers": [port]})["allowed"]
    for other in (True, 1.0, "1"):
        alike = port | {"ports": [{"containerPort": other}]}
        assert not review(judge, {"containers": [alike]})["allowed"]


SWEPT = {
    "name": "main",
    "image": "busybox",
    "command": ["train"],
    "args": ["--rate=0.1"],
    "env": [{"name": "SEED", "value": "1"}, {"name": "RATE", "value": "0.1"}],
}


def test_jobs_that_differ_in_arguments_and_variables_are_known(judged: list[str]) -> None:
    judge = admission()
    assert review(judge, {"containers": [SWEPT]})["allowed"]
    env = [{"value": "2", "name": "SEED"}, {"name": "RATE", "value": ""}]
    other = SWEPT | {"command": ["train", "--fast"], "args": [], "env": env}
    assert review(judge, {"containers": [other]})["allowed"]
    others = SWEPT | {"env": [{"name": "RATE", "value": "0.1"}, {"name": "RUN", "value": "1"}]}
    assert review(judge, {"containers": [others]})["allowed"]
    assert len(judged) == 1
    misnamed = SWEPT | {"env": [{"name": "RATE=", "value": "0.1"}]}
    assert not review(judge, {"containers": [misnamed]})["allowed"]
    assert len(judged) == 2


def test_of_two_variables_with_one_name_the_values_count() -> None:
    judge = admission()
    first = {"name": "PATH", "value": "/bin"}
    held = SWEPT | {"env": [first, {"name": "PATH", "value": "$(PATH):/opt"}]}
    assert "warnings" not in review(judge, {"containers": [held]})
    hidden = SWEPT | {"env": [first, {"name": "PATH", "value": "/opt"}]}
    assert "TPL-DOUBTFUL" in str(review(judge, {"containers": [hidden]})["warnings"])


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("command", "train"),
        ("command", [1]),
        ("command", {"train": 1}),
        ("args", ["--rate", None]),
        ("args", "--rate"),
        ("env", ["SEED", "RATE"]),
        ("env", {"SEED": "1", "RATE": "0.1"}),
        ("env", [{"name": "SEED", "value": 1}, {"name": "RATE", "value": "0.1"}]),
        ("env", [{"name": "SEED", "value": None}, {"name": "RATE", "value": "0.1"}]),
        ("env", [{"name": "SEED=", "value": "1"}, {"name": "RATE", "value": "0.1"}]),
        ("env", [{"name": "SEED", "valve": "1"}, {"name": "RATE", "value": "0.1"}]),
        ("env", [{"name": "SEED", "value": "1", "x": 1}, {"name": "RATE"}]),
        ("env", [{"name": "SEED", "valueFrom": {}}, {"name": "RATE", "value": "0.1"}]),
    ],
)
def test_what_is_no_list_of_texts_is_judged(judged: list[str], field: str, other: Any) -> None:
    judge = admission()
    assert review(judge, {"containers": [SWEPT]})["allowed"]
    spec = {"containers": [SWEPT | {field: other}]}
    assert review(judge, spec) == review(admission(), spec)
    assert len(judged) == 3


def test_an_update_is_judged_by_the_template_that_it_brings() -> None:
    judge = admission()
    stored = job(tasks=[task()])
    assert answer(judge, PATH, request(PATH, stored))["allowed"]
    scaled = job(tasks=[task(replicas=2)])
    assert answer(judge, PATH, request(PATH, scaled, "UPDATE", stored))["allowed"]
    worse = job(tasks=[task(spec=NO_IMAGE)])
    assert not answer(judge, PATH, request(PATH, worse, "UPDATE", stored))["allowed"]


def test_the_oldest_is_forgotten_first() -> None:
    known = KnownTemplates()
    keys = [known.key({"spec": {"hostname": f"h{number}"}}) for number in range(300)]
    for key in keys:
        known.add(key)
    assert len(known) == 256
    assert keys[43] not in known
    assert all(key in known for key in keys[44:])


@pytest.mark.parametrize(
    "template",
    [{"huge": 2**70}, {"half": "\ud800"}, {"long": "x" * 9000}],
    ids=["a number without end", "half a character", "a long one"],
)
def test_what_has_no_short_form_is_not_remembered(template: Raw) -> None:
    known = KnownTemplates()
    key = known.key(template)
    known.add(key)
    assert key not in known
    assert len(known) == 0
