"""The reader of documentation pages finds what is there, and notices what differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import Block, Command, all_pages, blocks, commands, inline_commands, mismatch

PAGE = Path("page.md")

TEXT = """\
# Title

```console
$ first
out
$ second \\
> more
```

```yaml job.yaml
kind: Job
```

```console norun exit=2
$ never
```

1. In a list:

   ```console
   $ third
   out
     more
   ```

```python
x = 1
```
"""


def test_fences_are_found_with_their_lines_and_words() -> None:
    console, manifest, never, listed, code = blocks(PAGE, TEXT)
    assert (console.line, console.is_run, console.file) == (3, True, "")
    assert (manifest.file, manifest.text, manifest.is_run) == ("job.yaml", "kind: Job", False)
    assert (never.is_run, never.exit_code, never.needs_cluster) == (False, 2, False)
    assert list(commands(listed)) == [Command("third", ("out", "  more"))]
    assert (code.file, code.is_run) == ("", False)


def test_commands_come_with_what_they_print() -> None:
    console = blocks(PAGE, TEXT)[0]
    assert list(commands(console)) == [
        Command("first", ("out",)),
        Command("second \\\nmore", ()),
    ]


def test_commands_within_sentences_are_found_where_they_stand(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"<!-- `make it` -->\n{TEXT}\nSee `helm get\nall`, or `replicas`, or `helm get all`.\n"
    )
    assert inline_commands(page) == ["helm get all"]


def test_a_block_that_begins_with_output_is_a_slip() -> None:
    with pytest.raises(ValueError, match=r"page.md:4: 'out' is no command"):
        list(commands(Block(PAGE, 4, "console", (), "out\n$ first")))


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a\nb", "a\nb\n"),
        ("a", "a   \n\n"),
        ("a …", "a 12 ms\n"),
        ("a … c", "a b b c\n"),
        ("a\n…\nd", "a\nb\nc\nd\n"),
        ("a\n...\nd", "a\nd\n"),
        ("…\nd", "a\nb\nd\n"),
        ("a\n…", "a\nb\nc\n"),
        ("a\n…", "a\n"),
        ("(a) [b] *", "(a) [b] *\n"),
        ("a\n\n", "a\n"),
    ],
)
def test_output_is_compared_with_room_for_what_changes(shown: str, printed: str) -> None:
    assert mismatch(tuple(shown.splitlines()), printed) == ""


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a", "b\n"),
        ("a", "a\nb\n"),
        ("a\nb", "a\n"),
        ("a …", "b 12 ms\n"),
        ("a\n…\nd", "a\nb\nc\n"),
        ("a … c", "a b\nc\n"),
        ("(a)", "a\n"),
    ],
)
def test_a_difference_is_shown_from_both_sides(shown: str, printed: str) -> None:
    said = mismatch(tuple(shown.splitlines()), printed)
    assert said.startswith("the page shows\n    ")
    assert "but it printed\n    " in said


def test_files_for_kubectl_begin_with_no_brace() -> None:
    """A file that begins with one is JSON for kubectl 1.32; later versions try YAML, too."""
    for page in all_pages():
        found = blocks(page)
        given = " ".join(
            each.text for block in found if block.language == "console" for each in commands(block)
        )
        for block in found:
            applied = re.search(rf"kubectl\b[^|\n]* -f ([^|;]* )?{re.escape(block.file)}\b", given)
            if block.file and applied:
                assert not block.text.startswith("{"), f"{page.name}: {block.file}"
