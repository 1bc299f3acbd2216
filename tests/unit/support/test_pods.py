"""What a pod that really runs is given is what kubelet would give it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.images.builder import GIVEN, Builder, ImageError
from tests.support.pods.environment import command, environment
from tests.support.pods.volumes import Volume, VolumeError

SECRET = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "bWluZQ==", "more": "YQ=="}}


def volume(folder: Path, group: int | None = None, **source: Any) -> Volume:
    secret = {"secretName": "s", **source}
    return Volume({"name": "v", "secret": secret}, folder / "v", group)


def modes(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


def test_files_have_the_modes_of_their_volume(tmp_path: Path) -> None:
    items = [{"key": "key", "path": "in/a", "mode": 0o400}, {"key": "more", "path": "in/b"}]
    made = volume(tmp_path, items=items, defaultMode=0o600)
    made.update(lambda *_: SECRET)
    assert modes(tmp_path / "v" / "in") == {"a": 0o400, "b": 0o600}
    assert (tmp_path / "v/in/a").read_text() == "mine"


def test_an_fs_group_may_read_whatever_the_mode(tmp_path: Path) -> None:
    made = volume(tmp_path, os.getgid(), defaultMode=0o600)
    made.update(lambda *_: SECRET)
    assert stat.S_IMODE((tmp_path / "v/key").stat().st_mode) == 0o640


def test_files_follow_the_object_but_a_file_that_was_mounted_by_itself_does_not(
    tmp_path: Path,
) -> None:
    made = volume(tmp_path)
    made.update(lambda *_: SECRET)
    alone = (tmp_path / "v/key").resolve().open()
    made.update(lambda *_: {**SECRET, "data": {"key": "bmV3"}})
    assert (tmp_path / "v/key").read_text() == "new"
    assert not (tmp_path / "v/more").exists()
    with alone:
        assert alone.read() == "mine"


def test_what_is_missing_and_not_optional_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VolumeError, match="there is no Secret s"):
        volume(tmp_path).update(lambda *_: None)
    volume(tmp_path / "other", optional=True).update(lambda *_: None)


def test_variables_refer_to_those_before_them() -> None:
    config = {"kind": "ConfigMap", "data": {"hosts": "a,b"}}
    source = {"configMapKeyRef": {"name": "c", "key": "hosts"}}
    env = [
        {"name": "HOSTS", "valueFrom": source},
        {"name": "BOTH", "value": "$(HOSTS);$(LATER);$$(HOSTS)"},
        {"name": "LATER", "value": "1"},
    ]
    container = {"env": env, "command": ["run", "$(BOTH)"]}
    found = environment({"spec": {"hostname": "h"}}, container, "/root", lambda *_: config)
    assert found["BOTH"] == "a,b;$(LATER);$(HOSTS)"
    assert (found["HOME"], found["HOSTNAME"]) == ("/root", "h")
    assert command(container, found) == ["run", "a,b;$(LATER);$(HOSTS)"]


def test_images_of_ones_own_must_be_whole(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    with pytest.raises(ImageError, match="lacks openmpi-4, openmpi-5, mpich-5, tensorflow, ray"):
        Builder({GIVEN: str(tmp_path)}).ensure()
    for name in ("openmpi-4", "openmpi-5", "mpich-5", "tensorflow", "ray"):
        (tmp_path / name).mkdir()
    found = Builder({GIVEN: str(tmp_path)}).ensure()
    assert found["mpich-5"] == (tmp_path / "base", tmp_path / "mpich-5")
