"""Words that are hard to understand at first reading are not in code, charts and pages.

What to write instead: `anew` again, `mend` fix, `in force` in effect, `stumbled` unexpected error, `brings along` contains,
`None when it is none` "None if it is not a duration".
"""

import re
import subprocess

from tests.docs.pages import ROOT

VAGUE = re.compile(
    "|".join(
        (
            r"\b(whoever|nobody|somebody|anybody|spoilt|in vain)\b",
            r"\b(mended|mend|anew|told of|told as|absurd|nonsense|forestalled)\b",
            r"\b(in force|into force|gives way|on the spot|at the door|for the sake of)\b",
            r"\b(under judgement|beyond all (measure|bounds)|in vain|makes? felt|knows best)\b",
            r"\b(rooms that|the fate of|their fate|stumble[ds]?|brings? along|brought along)\b",
            r"\bNone (when|if) (it|the (text|word|string)) is none\b",
        )
    ),
    re.IGNORECASE,
)
"""Words and constructions with a plain counterpart; a row each for those that belong together."""


CLASS = re.compile(r"^ *class (\w+)\b", re.MULTILINE)


def test_they_are_not_used() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "pumice", "docs", "charts", "benchmarks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in listed.stdout.splitlines()
        if (path := ROOT / name).suffix in {".py", ".md", ".yaml", ".json", ".tpl", ".txt"}
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if VAGUE.search(line)
    ]
    assert not found, "\n".join(found)


def test_a_name_of_a_class_stands_for_one_class() -> None:
    """A reader who looks for a class finds one."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "pumice").rglob("*.py")):
        for name in CLASS.findall(path.read_text()):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert not twice
