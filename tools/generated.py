"""What generators share: write a file that follows from the code, or say that it is stale."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def run(
    name: str, purpose: str | None, page: Callable[[], str], arguments: Sequence[str] | None
) -> int:
    """Write a page, or check it; exit code 1 when it is missing or stale.

    Args:
        name: The generator's module below `tools`.
        purpose: What its help says.
        page: Makes the page.
        arguments: Words of the command line; those of this process when None.
    """
    parser = argparse.ArgumentParser(prog=f"python -m tools.{name}", description=purpose)
    parser.add_argument("page", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare, exit 1 on a difference")
    options = parser.parse_args(arguments)
    return 0 if settle(options.page, page(), check=options.check) else 1


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


def settle_blocks(pages: Iterable[Path], filled: Callable[[str], str], *, check: bool) -> bool:
    """Bring the generated blocks of pages up to date, or with `check` only look; whether all is well afterwards.

    Args:
        pages: The pages.
        filled: Makes the text of a page; raises a ValueError for a block about something that does not exist.
        check: Only look.
    """
    is_well = True
    for page in pages:
        try:
            is_well &= settle(page, filled(page.read_text(encoding="utf-8")), check=check)
        except ValueError as error:
            sys.stderr.write(f"{page}: {error}\n")
            is_well = False
    return is_well


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table, each cell on one line."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
