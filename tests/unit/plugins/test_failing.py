"""A plugin that fails or answers with something else is named, with its package, and takes nothing along."""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from pumice.plugins import (
    BadValueError,
    EnvVar,
    Findings,
    JobPlugin,
    PluginError,
    PodEdits,
    Wiring,
    builtin,
    job_annotations,
    problems,
)
from pumice.plugins.arguments import Argument, ArgumentSpec, ValueType
from tests.unit.plugins.support import job, pod_of, task

ORIGIN = "pumice-mine (mine:Mine)"
NAMED = f'plugin "mine" of {ORIGIN}'


def raising(error: BaseException) -> Callable[..., Any]:
    def method(*_: object) -> Any:
        raise error

    return method


def giving(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


def plugin_with(**methods: Any) -> JobPlugin:
    members = {"name": "mine", "summary": "Breaks."} | methods
    made: JobPlugin = type("Mine", (JobPlugin,), members)()
    return made


def asked(plugin: JobPlugin, what: str) -> Any:
    """What a Job's wiring answers, beside plugins that do as they should."""
    registry = builtin().with_plugin(plugin, ORIGIN)
    train = job("j", task("w", 2), plugins={"svc": [], "mine": [], "env": []})
    wiring = Wiring(train, registry)
    match what:
        case "pod":
            return wiring.pod(train.tasks[0], 1, pod_of("j-w-1", "w"))
        case "objects":
            return wiring.objects()
        case "secrets":
            return wiring.secrets()
    assert wiring.job_annotations() == job_annotations(train, registry)
    return wiring.job_annotations()


BROKEN: dict[str, tuple[str, Callable[..., Any], str, str]] = {
    "edits raise": ("pod_edits", raising(RuntimeError("boom")), "pod", "RuntimeError: boom (test"),
    "edits exit": ("pod_edits", raising(SystemExit(3)), "pod", "failed with SystemExit: 3"),
    "edits are a number": ("pod_edits", giving(7), "pod", "pod_edits gives 7, expected PodEdits"),
    "edits are nothing": ("pod_edits", giving(None), "pod", "gives None, expected PodEdits"),
    "variables are a number": ("pod_edits", giving(PodEdits(env=7)), "pod", "TypeError"),  # type: ignore[arg-type]
    "a volume is a number": ("pod_edits", giving(PodEdits(mounts=(7,))), "pod", "AttributeError"),  # type: ignore[arg-type]
    "a value is a number": (
        "pod_edits",
        giving(PodEdits(env=(EnvVar("A", 5),))),  # type: ignore[arg-type]
        "pod",
        "the value of A is 5, expected text",
    ),
    "preparing gives nothing": ("for_job", giving(None), "pod", "for_job gives None, expected a"),
    "preparing raises": ("for_job", raising(KeyError("x")), "pod", "failed with KeyError: 'x'"),
    "objects are numbers": ("objects", giving([7]), "objects", "objects gives 7, expected a mani"),
    "objects are none": ("objects", giving(None), "objects", "failed with TypeError"),
    "objects have no name": ("objects", giving([{"metadata": {}}]), "objects", "with a name"),
    "objects of no kind": (
        "objects",
        giving([{"apiVersion": "v1", "kind": "Confmap", "metadata": {"name": "a"}}]),
        "objects",
        "objects gives a v1 Confmap, which is no kind that Pumice knows",
    ),
    "secrets are numbers": ("secrets", giving([1]), "secrets", "secrets gives 1, expected KeySec"),
    "secrets exit": ("secrets", raising(SystemExit()), "secrets", "failed with SystemExit"),
    "annotations raise": ("job_annotations", raising(ValueError("no")), "rest", "ValueError: no"),
    "annotations exit": ("job_annotations", raising(SystemExit(3)), "rest", "SystemExit: 3"),
    "annotations are numbers": (
        "job_annotations",
        giving({"a": 5}),
        "rest",
        "job_annotations gives 5 for 'a', expected texts",
    ),
    "annotations are a list": ("job_annotations", giving([]), "rest", "expected a dict of texts"),
    "its own error": ("objects", raising(PluginError("too big")), "objects", ": too big"),
}
"""Method, what it does, what is asked, and what is said of it."""


@pytest.mark.parametrize(("method", "broken", "what", "piece"), BROKEN.values(), ids=list(BROKEN))
def test_it_is_named(method: str, broken: Any, what: str, piece: str) -> None:
    with pytest.raises(PluginError) as raised:
        asked(plugin_with(**{method: broken}), what)
    assert str(raised.value).startswith(NAMED)
    assert piece in str(raised.value)


@pytest.mark.parametrize(
    ("broken", "piece"),
    [
        (
            raising(RuntimeError("boom\nand more")),
            "failed with RuntimeError: boom and more (test_fa",
        ),
        (raising(SystemExit(3)), "failed with SystemExit: 3"),
        (raising(RecursionError()), "failed with RecursionError (test"),
        (giving(None), ": check gives None, expected Findings"),
        (giving(Findings(errors=("bad",))), ": check has 'bad' among its errors"),  # type: ignore[arg-type]
        (giving(Findings(warnings=7)), ": check gives 7 for warnings"),  # type: ignore[arg-type]
    ],
    ids=["raises", "exits", "recurs", "nothing", "texts", "number"],
)
def test_a_job_that_it_cannot_judge_is_refused_for_that(broken: Any, piece: str) -> None:
    registry = builtin().with_plugin(plugin_with(check=broken), ORIGIN)
    train = job("j", task("w"), plugins={"mine": [], "svc": ["--nonsense"]})

    [error], [warning] = problems(train, registry)

    assert (error.path, error.code) == ("spec.plugins.mine", "JOB-PLUGIN")
    assert error.message.startswith(NAMED)
    assert piece in error.message
    assert warning.path == "spec.plugins.svc[0]"  # the others have judged, too


@pytest.mark.parametrize("strict_upstream", [False, True])
@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3)], ids=["raises", "exits"])
def test_words_that_it_cannot_read_are_not_used(error: Any, strict_upstream: bool) -> None:
    odd = Argument("colour", ValueType("colour", raising(error)), "red", "a colour")
    seen = []

    def check(_: object, __: object, values: Any) -> Findings:
        seen.append(values["colour"])
        return Findings()

    plugin = plugin_with(arguments=ArgumentSpec(odd), check=check)
    registry = builtin().with_plugin(plugin, ORIGIN)
    train = job("j", task("w"), plugins={"mine": ["--colour=blue"]})

    errors, [warning] = problems(train, registry, strict_upstream=strict_upstream)

    assert (errors, seen) == ((), ["red"])
    assert f"{NAMED} failed to read them with {type(error).__name__}" in warning.message


def test_a_word_that_it_refuses_is_a_usual_problem() -> None:
    odd = Argument(
        "colour", ValueType("colour", raising(BadValueError("a colour"))), "red", "a colour"
    )
    registry = builtin().with_plugin(plugin_with(arguments=ArgumentSpec(odd)), ORIGIN)
    train = job("j", task("w"), plugins={"mine": ["--colour=blue"]})
    [warning] = problems(train, registry).warnings
    assert "expected a colour" in warning.message


def test_one_that_exits_as_it_is_loaded_is_named(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exiting_plugin.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("mine", "exiting_plugin:Mine", "pumice.job_plugins")
    with pytest.raises(PluginError, match=r'"mine" of .* cannot be loaded: SystemExit\(3\)'):
        builtin().with_entry_points([entry])
