"""Words that make a reader read twice are not in code, charts and pages."""

import re
import subprocess

from tests.docs.pages import ROOT

VAGUE = re.compile(
    r"\b(whoever|nobody|somebody|anybody|spoilt|mended|told of|in vain)\b", re.IGNORECASE
)


def test_they_are_not_used() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "pumice", "docs", "charts"],
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
