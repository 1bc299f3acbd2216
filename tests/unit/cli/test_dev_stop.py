"""Which cluster `pumice dev stop` ends."""

from pathlib import Path

import pytest

from pumice.cli.dev import stop
from pumice.cli.development import detached
from pumice.cli.development.detached import Detached
from pumice.cli.exits import UserError


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Kubeconfigs of the clusters that were ended, of two that run."""
    monkeypatch.chdir(tmp_path)
    both = [Detached(1, "", str(tmp_path / name), "", 0) for name in ("one", "two")]
    names: list[str] = []
    monkeypatch.setattr(detached, "running", lambda: both)
    monkeypatch.setattr(detached, "stop", lambda each: names.append(Path(each.kubeconfig).name))
    return names


def test_of_several_the_one_of_the_environment_is_ended(
    ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "two")
    stop()
    assert ended == ["two"]
    monkeypatch.setenv("KUBECONFIG", "another")
    with pytest.raises(UserError, match="2 clusters run; name one by --kubeconfig, or --all: "):
        stop()
    assert ended == ["two"]


def test_a_file_may_be_named_in_any_way(
    ended: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stop(Path("../") / tmp_path.name / "one")
    assert ended == ["one"]
    capsys.readouterr()
    stop(Path("three"))
    assert ended == ["one"]
    assert capsys.readouterr().err == (
        f"no such cluster runs, only of {tmp_path}/one, {tmp_path}/two\n"
    )
