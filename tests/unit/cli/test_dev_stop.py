"""Which cluster `pumice dev stop` ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pumice.cli.dev import stop
from pumice.cli.development import detached
from pumice.cli.development.detached import Detached
from pumice.cli.exits import UserError

Stopped = Callable[..., list[str]]


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stopped:
    """Runs the verb, with clusters of so many of the files `one` and `two`, and returns those whose cluster ended."""
    monkeypatch.chdir(tmp_path)

    def run(running: int, environment: str = "", **options: Any) -> list[str]:
        found = [Detached(1, "", str(tmp_path / name), "", 0) for name in ("one", "two")]
        names: list[str] = []
        monkeypatch.setenv("KUBECONFIG", environment)
        monkeypatch.setattr(detached, "running", lambda: found[2 - running :])
        monkeypatch.setattr(detached, "stop", lambda each: names.append(Path(each.kubeconfig).name))
        stop(**options)
        return names

    return run


def test_of_several_the_one_of_the_environment_is_ended(stopped: Stopped, tmp_path: Path) -> None:
    assert stopped(2, "two") == ["two"]
    assert stopped(2, f"{tmp_path}/two:one") == ["one"]  # the order in which they started
    with pytest.raises(UserError, match="2 clusters run; name one by --kubeconfig, or --all: "):
        stopped(2)
    with pytest.raises(UserError, match="--all ends all clusters; leave out --kubeconfig one"):
        stopped(2, kubeconfig=Path("one"), every=True)
    assert stopped(2, "two", every=True) == ["one", "two"]


@pytest.mark.parametrize("content", ["", "a kubeconfig of pumice dev"])
def test_one_of_which_the_environment_does_not_speak_is_left_alone(
    stopped: Stopped, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    """`pumice dev stop` a second time: the file is gone, or it is that of a cluster that was killed."""
    if content:
        own = {"extensions": [{"name": "pumice.dev/dev"}], "clusters": [{}]}
        Path("mine").write_text(json.dumps(own))
    for running, others in (
        (2, f"others do, name one by --kubeconfig, or --all: {tmp_path}/one, {tmp_path}/two"),
        (1, f"another does, name it by --kubeconfig, or --all: {tmp_path}/two"),
    ):
        assert stopped(running, "mine") == []
        assert capsys.readouterr().err == (f"no cluster of mine runs in the background; {others}\n")
    assert stopped(0, "mine") == []
    assert capsys.readouterr().err == "no cluster of mine runs in the background\n"


def test_the_only_one_is_ended_where_the_environment_names_a_real_cluster(stopped: Stopped) -> None:
    Path("real").write_text(json.dumps({"clusters": [{"name": "production"}]}))
    assert stopped(1, "real") == ["two"]
    assert stopped(1) == ["two"]


def test_a_file_may_be_named_in_any_way(
    stopped: Stopped, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stopped(2, kubeconfig=Path("../") / tmp_path.name / "one") == ["one"]
    capsys.readouterr()
    assert stopped(2, kubeconfig=Path("three")) == []
    assert capsys.readouterr().err.startswith("no cluster of three runs in the background; others")
