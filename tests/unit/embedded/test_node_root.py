"""The file system of a container, as far as it is files."""

import os
from pathlib import Path

from pumice.embedded.node import root


def test_folders_above_a_mount_keep_their_owners_and_modes(tmp_path: Path) -> None:
    upper, layer = tmp_path / "upper", tmp_path / "layer"
    upper.mkdir()
    home = layer / "home" / "user"
    home.mkdir(parents=True)
    home.chmod(0o750)
    if os.geteuid() == 0:
        os.chown(home, 1000, 1001)

    root._make_above(str(upper), [str(layer)], "home/user/.ssh")

    kept, below = (upper / "home/user").stat(), home.stat()
    assert (kept.st_uid, kept.st_gid) == (below.st_uid, below.st_gid)
    assert kept.st_mode & 0o7777 == 0o750
    assert (upper / "home/user/.ssh").stat().st_mode & 0o7777 == 0o755
