"""`pumice dev` writes its kubeconfig only where there is none, or where it wrote one itself."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from pumice.cli.development.dev_kubeconfig import check, written
from pumice.cli.exits import UserError
from pumice.embedded import EmbeddedCluster
from tests.unit.cli.conftest import Pumice

NOBODY = 65534  # the user `nobody`
FOREIGN = "apiVersion: v1\nkind: Config\nclusters: [{name: production, cluster: {}}]\n"


@pytest.fixture
def config() -> str:
    """The kubeconfig of a cluster."""
    return of_port(1)


def of_port(port: int) -> str:
    text = "apiVersion: v1\nkind: Config\nclusters:\n- {name: pumice, cluster: {server: 'http://127.0.0.1:%d'}}\n"
    return text % port


def change(file: Path, **fields: object) -> None:
    """Change a kubeconfig, as `kubectl config` does."""
    found = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(found | fields))


def test_a_file_is_written_for_its_owner_only_and_removed(tmp_path: Path, config: str) -> None:
    file = tmp_path / "config"
    with written(file, config):
        assert file.stat().st_mode & 0o777 == 0o600
        assert yaml.safe_load(file.read_text()).items() >= yaml.safe_load(config).items()
    assert not file.exists()


def test_a_file_appears_complete(
    tmp_path: Path, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for the file may read it at once, and who reads an earlier one is not cut off."""
    file = tmp_path / "config"
    rename, met = Path.replace, list[str]()

    def watched(self: Path, target: Path) -> Path:
        met.append(self.read_text())
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    with written(file, config):
        assert met == [file.read_text()]
        assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_a_file_that_was_left_behind_is_replaced(tmp_path: Path, config: str) -> None:
    file = tmp_path / "config"
    with written(file, config):
        left = file.read_text()
    file.write_text(left)
    file.chmod(0o644)

    with written(file, of_port(2)):
        assert "127.0.0.1:2" in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
    assert not file.exists()


def test_a_file_of_a_cluster_that_still_runs_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "config"
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        with written(file, of_port(port)):
            check(file)  # nothing answers
            listening.listen()
            with pytest.raises(UserError) as refused:
                check(file)
            assert str(refused.value) == (
                f"--kubeconfig {file}: belongs to another `pumice dev`, which answers at "
                f"http://127.0.0.1:{port}; stop that one (`pumice dev stop`), or name another file"
            )


def test_a_file_in_which_kubectl_chose_a_namespace_is_still_its_own(
    tmp_path: Path, config: str
) -> None:
    file = tmp_path / "config"
    with written(file, config):
        change(file, contexts=[{"name": "pumice", "context": {"namespace": "other"}}])
        check(file)
    assert not file.exists()


def test_a_file_of_another_run_is_not_removed(tmp_path: Path, config: str) -> None:
    file = tmp_path / "config"
    with written(file, config):
        with written(file, of_port(2)):
            later = file.read_text()
        file.write_text(later)
    assert file.read_text() == later


@pytest.mark.parametrize("text", ["mine", FOREIGN])
def test_a_file_that_has_become_another_is_not_removed(
    tmp_path: Path, config: str, text: str
) -> None:
    file = tmp_path / "config"
    with written(file, config):
        file.write_text(text)
    assert file.read_text() == text


def test_a_file_that_got_another_cluster_is_kept(tmp_path: Path, config: str) -> None:
    file = tmp_path / "config"
    with written(file, config):
        change(file, clusters=[*yaml.safe_load(config)["clusters"], {"name": "production"}])
    with pytest.raises(UserError, match="was not written by `pumice dev`"):
        check(file)


def test_a_file_that_is_gone_at_the_end_is_no_problem(tmp_path: Path, config: str) -> None:
    file = tmp_path / "config"
    with written(file, config):
        file.unlink()


@pytest.mark.parametrize(
    "content",
    [FOREIGN.encode(), b"", b"{", b"\xff", b"[]", b"extensions: 3\nclusters: 3\n", b"[" * 9999],
)
def test_a_file_that_dev_did_not_write_is_refused_before_anything_starts(
    pumice: Pumice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(EmbeddedCluster, "__init__", None)  # nothing may be started
    file = tmp_path / "config"
    file.write_bytes(content)

    ran = pumice("dev", "--kubeconfig", file)

    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"--kubeconfig {file}: exists and was not written by `pumice dev`" in ran.err
    assert file.read_bytes() == content


def test_a_symbolic_link_is_what_it_points_to(tmp_path: Path, config: str) -> None:
    file, link = tmp_path / "config", tmp_path / "link"
    link.symlink_to(file)
    with written(link, config):
        assert file.is_file()
    assert link.is_symlink()
    assert not file.exists()

    file.write_text(FOREIGN)
    with pytest.raises(UserError, match="was not written by `pumice dev`"):
        check(link)
    assert file.read_text() == FOREIGN


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", "is a directory, expected a file"),
        ("no/such", "there is no folder"),
        ("loop", "is no path"),
        ("pipe", "exists and was not written by `pumice dev`"),
        ("file/below", "there is no folder"),
        ("a" * 300, "File name too long"),
        ("a\0b", "is no path"),
    ],
)
def test_paths_at_which_nothing_can_be_written(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=message):
        check(tmp_path / path)


@pytest.mark.parametrize(
    ("mode", "of_folder", "message"),
    [(0o000, 0o755, "cannot be read: Permission denied"), (0o600, 0o555, "is not writable")],
)
def test_files_that_this_user_may_not_replace(mode: int, of_folder: int, message: str) -> None:
    with another_user(), tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name) / "kube"
        folder.mkdir()
        file = folder / "config"
        file.touch(mode)
        folder.chmod(of_folder)
        with pytest.raises(UserError, match=message):
            check(file if mode == 0 else folder / "other")
        folder.chmod(0o755)


@contextmanager
def another_user() -> Iterator[None]:
    """Act as a user without root's rights, in a temporary folder of that user; root may read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_a_file_that_comes_while_the_cluster_starts_is_not_overwritten(
    tmp_path: Path, config: str
) -> None:
    file = tmp_path / "config"
    check(file)
    file.write_text(FOREIGN)
    with pytest.raises(UserError, match="was not written"), written(file, config):
        pass
    assert file.read_text() == FOREIGN
