"""The picture of the scheduler's folders in `docs/architecture.md` shows what the files really import."""

import ast
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_SCHEDULER = _ROOT / "pumice/scheduler"


def test_the_picture_of_the_folders_shows_the_imports() -> None:
    page = (_ROOT / "docs/architecture.md").read_text()
    drawn = page.split("<!-- folders -->\n")[1].split("<!-- end of folders -->")[0]
    assert drawn == picture()


def picture() -> str:
    """The folders as a diagram: an arrow leads to what a folder needs, if no longer way leads there."""
    needs = _needs()
    arrows = [
        f"  {folder} --> {other}\n"
        for folder, others in sorted(needs.items())
        for other in sorted(others)
        if not any(other in needs[between] for between in others)
    ]
    return "```mermaid\nflowchart TD\n" + "".join(arrows) + "```\n"


def _needs() -> dict[str, set[str]]:
    """For each folder those that it imports, also by way of files at the root."""
    direct: dict[str, set[str]] = {}
    for path in sorted(_SCHEDULER.rglob("*.py")):
        if (name := path.relative_to(_SCHEDULER).parts[0].removesuffix(".py")) != "__init__":
            direct.setdefault(name, set()).update(_imports(path) - {name})
    folders = {name for name in direct if (_SCHEDULER / name).is_dir()}
    return {folder: _reached(folder, direct) & folders for folder in folders}


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                parts = f"{node.module}.{alias.name}".split(".")
                if parts[:2] == ["pumice", "scheduler"] and _is_part(parts[2]):
                    found.add(parts[2])
    return found


def _is_part(name: str) -> bool:
    return (_SCHEDULER / name).is_dir() or (_SCHEDULER / f"{name}.py").is_file()


def _reached(start: str, direct: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    left = [start]
    while left:
        new = direct.get(left.pop(), set()) - seen
        seen |= new
        left.extend(new)
    return seen
