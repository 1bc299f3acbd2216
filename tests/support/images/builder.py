"""The images: found where the environment points, or built once and kept for all checkouts.

A set that is complete lies in `$XDG_CACHE_HOME/pumice/images/<hash of the recipe>`, into which it is moved
in one step, so that a build that was cut off leaves nothing that would be taken for a whole one.
Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.images import recipe
from tests.support.images.debian import DebianError, unpack
from tests.support.images.finishing import finish, finish_wheels, packages_of
from tests.support.wheels import WheelError, install, install_locked

__all__ = ["GIVEN", "Builder", "ImageError"]

GIVEN = "PUMICE_TEST_IMAGES"
"""Variable that names a folder with layers of one's own."""

ELSEWHERE = (
    f"Where images cannot be built, have {GIVEN} name a folder with the root file systems "
    f"{', '.join(recipe.LAYERS)} (CONTRIBUTING.md tells what they hold)."
)


class ImageError(RuntimeError):
    """The images are not there and cannot be built; the message says what to do."""


def say(line: str) -> None:
    """Progress goes to stderr, a line at a time."""
    print(f"images: {line}", file=sys.stderr, flush=True)


class Builder:
    """Finds the images and builds them when they are missing.

    Args:
        environ: The environment to work in; this process's own unless given.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        cache = self.environ.get("XDG_CACHE_HOME", "")
        base = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
        self.store = base / "pumice" / "images"
        given = self.environ.get(GIVEN)
        self.given = Path(given) if given else None
        self.home = self.given or self.store / recipe.digest()

    def ensure(self) -> dict[str, tuple[Path, ...]]:
        """All images by name, as their layers from the bottom up, after building what is missing.

        Raises:
            ImageError: They are neither there nor can they be built here.
        """
        if self.given is not None:
            missing = [name for name in recipe.LAYERS if not (self.given / name).is_dir()]
            if missing:
                raise ImageError(f"{GIVEN} is {self.given}, which lacks {', '.join(missing)}")
        elif not self.home.is_dir():
            with self._alone():
                if not self.home.is_dir():  # another build may have just finished
                    self._build()
        return {
            image: tuple(self.home / layer for layer in stack)
            for image, stack in recipe.IMAGES.items()
        }

    def _build(self) -> None:
        begun = time.monotonic()
        for left_over in self.store.glob(".building-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=self.store, prefix=".building-") as folder:
            scratch = Path(folder)
            made = scratch / "made"
            try:
                self._fill(made, scratch)
            except (DebianError, WheelError, OSError, subprocess.CalledProcessError) as error:
                raise ImageError(f"{error}\n{ELSEWHERE}") from error
            made.rename(self.home)
        size = _mebibytes(self.home)
        say(f"{self.home}: {size:.0f} MiB, after {time.monotonic() - begun:.0f} s")

    def _fill(self, made: Path, scratch: Path) -> None:
        for layer, pin in recipe.PINS.items():
            say(f"installing {pin[0]}")
            (made / layer).mkdir(parents=True)
            requirement, *hashes = pin
            place = made / layer / "usr" / "local"
            pinned = [f"sha256:{each}" for each in hashes]
            install(requirement, pinned, ("--prefix", place), self.environ)
        base = made / recipe.BASE
        base.mkdir()
        apt = scratch / "apt"
        apt.mkdir()
        say(f"fetching OpenSSH and PyTorch of Debian {recipe.SUITE} (270 MiB)")
        packages = unpack(recipe.PACKAGES, base, apt, self.environ)
        finish(base)
        for layer, lock in recipe.LOCKED.items():
            say(f"installing {layer} and what it needs")
            install_locked(lock, recipe.PYTHON, packages_of(made / layer), self.environ)
            finish_wheels(base, made / layer)
        record = {"packages": packages, "wheels": [pin[0] for pin in recipe.PINS.values()]}
        (made / "contents.json").write_text(json.dumps(record, indent=2) + "\n")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One build at a time; the kernel lets go of the lock when a build dies."""
        self.store.mkdir(parents=True, exist_ok=True)
        with (self.store / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _mebibytes(folder: Path) -> float:
    counted = subprocess.run(
        ["du", "-sk", folder], capture_output=True, text=True, check=True
    ).stdout
    return int(counted.split()[0]) / 1024
