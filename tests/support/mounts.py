"""A folder that changes as kubelet changes a mounted Secret or ConfigMap: all files at once, by one symbolic link."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping
from pathlib import Path


class SecretMount:
    """A mounted Secret or ConfigMap.

    Attributes:
        folder: Where it is mounted; its files are links into `..data`, which is a link itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._versions = itertools.count()
        folder.mkdir()

    def put(self, files: Mapping[str, bytes]) -> None:
        """Swap in other files."""
        fresh = self.folder / f"..version_{next(self._versions)}"
        fresh.mkdir()
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        data, link = self.folder / "..data", self.folder / "..data_tmp"
        old = data.resolve() if data.exists() else None
        link.symlink_to(fresh.name)
        link.rename(data)
        for name in files:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        for stale in {path.name for path in self.folder.iterdir()} - set(files):
            if not stale.startswith(".."):
                (self.folder / stale).unlink()
        if old is not None:
            shutil.rmtree(old)
