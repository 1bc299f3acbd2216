"""The documentation as a site: every page is in its navigation, and it builds without a warning."""

import re
import subprocess

from tests.docs.pages import ROOT


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(
        r"^ *- ([a-z][a-z/-]*\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    present = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(present)


def test_it_builds() -> None:
    done = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "build/site/migration.html").read_text()
    assert 'title="cluster.yaml"' not in page  # it became a heading of its block
    assert '<span class="filename">cluster.yaml</span>' in page
    assert "console cluster" not in page
