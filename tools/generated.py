"""What generators share: write a file that follows from the code, or say that it is stale."""

import sys
from pathlib import Path

__all__ = ["settle"]


def settle(path: Path, text: str, *, check: bool, target: str = "generate") -> bool:
    """Bring a file up to date, or with `check` only look; whether all is well afterwards.

    Args:
        path: The file.
        text: What it should hold.
        check: Only look.
        target: Target of make that writes it.
    """
    if path.exists() and path.read_text() == text:
        return True
    if check:
        sys.stderr.write(f"not up to date, run `make {target}`: {path}\n")
        return False
    path.write_text(text)
    sys.stderr.write(f"wrote {path}\n")
    return True
