"""Chromium for the tests of the page: found on this machine, or installed once by apt, with `python -m tests.support.browser`.

Playwright drives it, and brings no browser of its own. Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import sys

from tests.support import apt

GIVEN = "PUMICE_TEST_BROWSER"
"""Variable that names the executable of a Chromium of one's own."""

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PACKAGE = "chromium"


class BrowserError(RuntimeError):
    """There is no Chromium; the message says what to do."""


def chromium() -> str:
    """The executable.

    Raises:
        BrowserError: There is none.
    """
    names = [os.environ[GIVEN]] if os.environ.get(GIVEN) else _NAMES
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise BrowserError(
            f"there is no {' or '.join(names)} on this machine: `make browser` installs Debian's as root; elsewhere "
            f"install Chromium, or have {GIVEN} name its executable"
        )
    return found


def install() -> None:
    """Install Debian's Chromium if there is none.

    Raises:
        BrowserError: There is no apt, or it failed.
    """
    try:
        chromium()
    except BrowserError:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            raise
    else:
        return
    try:
        apt.install(_PACKAGE)  # 100 MiB
    except apt.AptError as error:
        raise BrowserError(str(error)) from None
    chromium()


if __name__ == "__main__":
    try:
        install()
    except BrowserError as error:
        print(f"browser: {error}", file=sys.stderr)
        sys.exit(1)
