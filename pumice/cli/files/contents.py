"""Contents of files and of stdin, as users name them, up to a limit: a device such as /dev/zero has no end."""

import io
import sys
from pathlib import Path
from typing import BinaryIO

from pumice.cli.exits import UserError

STDIN = "-"
MOST_BYTES = 1 << 30
"""Maximum size of an input."""
_CHUNK = 1 << 20


def read_bytes(file: str | Path) -> bytes:
    """Content of a file, or of stdin for `-`.

    Raises:
        UserError: It cannot be read, or has more than `MOST_BYTES`.
    """
    if str(file) == STDIN:
        return _bounded(sys.stdin.buffer, "stdin")
    try:
        with Path(file).open("rb") as stream:
            return _bounded(stream, str(file))
    except IsADirectoryError:
        raise UserError(f"{file}: is a directory, expected a file") from None
    except FileNotFoundError:
        raise UserError(f"{file}: no such file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read: {getattr(error, 'strerror', error)}") from None


def _bounded(stream: BinaryIO, name: str) -> bytes:
    found = io.BytesIO()  # which gives its buffer away without a copy
    while chunk := stream.read(_CHUNK):
        if found.tell() + len(chunk) > MOST_BYTES:
            raise UserError(
                f"{name}: has more than {MOST_BYTES:,} bytes, the limit of an input; split it"
            )
        found.write(chunk)
    return found.getvalue()
