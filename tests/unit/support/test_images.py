"""Images of tests' pods that a person has made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.images.builder import GIVEN, Builder, ImageError

LAYERS = ("openmpi-4", "openmpi-5", "mpich-5", "tensorflow", "ray")


def test_images_of_ones_own_must_be_whole(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    with pytest.raises(ImageError, match=f"lacks {', '.join(LAYERS)}"):
        Builder({GIVEN: str(tmp_path)}).ensure()
    for name in LAYERS:
        (tmp_path / name).mkdir()
    found = Builder({GIVEN: str(tmp_path)}).ensure()
    assert found["mpich-5"] == (tmp_path / "base", tmp_path / "mpich-5")
