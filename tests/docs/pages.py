"""Documentation as something that can be run.

A fence says what becomes of it; readers of the rendered page see nothing of that:

    ```console              runs, in a folder of the page's own, after the blocks before it
    ```console cluster      runs with kubectl on the PATH: on what the page starts with `pumice dev`; on a page
                            without that on a real control plane, with helm on the PATH, too
    ```console exit=1       runs, and its last command ends with that exit code
    ```console norun        is for the eye: it needs what a test has not
    ```yaml job.yaml        becomes a file of that name

In a console block, a line that begins with `$ ` is a command (`> ` goes on with it), and what follows is
what it prints. `…` in a line stands for any text, a line of `…` alone for any lines. A command with
nothing after it may print what it likes. One that ends in ` &` runs until the page is through; the next
one waits for its first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_INLINE = re.compile(r"`((?:kubectl|helm|docker|make|openssl|pumice) [^`]+)`")
_DEV = re.compile(r"pumice dev\b.* --detach$")
_FENCE = re.compile(r"^( *)```(\S*)[ \t]*(.*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: Its page.
        line: Line of its opening fence, from 1.
        language: First word behind the fence.
        words: The others.
        text: What it holds.
    """

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def is_run(self) -> bool:
        """Whether its commands are run."""
        return self.language == "console" and not {"norun", "torch"} & {*self.words}

    @property
    def needs_cluster(self) -> bool:
        """Whether its commands talk to an API server."""
        return "cluster" in self.words

    @property
    def file(self) -> str:
        """Name of the file that it becomes, or nothing."""
        named = self.language in {"yaml", "json", "python"} and self.words
        return self.words[0] if named else ""

    @property
    def exit_code(self) -> int:
        """How its last command ends."""
        return next((int(each[5:]) for each in self.words if each.startswith("exit=")), 0)


@dataclass(frozen=True)
class Command:
    """A command of a console block.

    Attributes:
        text: What is given to the shell.
        output: Lines that the page shows below it.
    """

    text: str
    output: tuple[str, ...]


def pages() -> list[Path]:
    """The pages whose commands are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def pages_on(cluster: str) -> list[Path]:
    """The pages that have commands to run, by what these need.

    Args:
        cluster: `nothing`, `pumice dev` (which the page starts itself) or `control plane`.
    """
    return [page for page in pages() if _cluster(page) == cluster]


def _cluster(page: Path) -> str:
    run = [each for each in blocks(page) if each.is_run]
    if not any(each.needs_cluster for each in run):
        return "nothing" if run else ""
    texts = [each.text for block in run for each in commands(block)]
    return "pumice dev" if any(map(_DEV.match, texts)) else "control plane"


def all_pages() -> list[Path]:
    """Every page of the repository, those too that have nothing to run."""
    others = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "charts/pumice/README.md"]
    return [*pages(), *others, *sorted((ROOT / "examples").rglob("*.md"))]


def blocks(page: Path, text: str | None = None) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    opened: tuple[int, str, tuple[str, ...]] | None = None
    margin = ""
    held: list[str] = []
    for number, line in enumerate((page.read_text() if text is None else text).splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            margin, opened = fence[1], (number, fence[2], tuple(fence[3].split()))
            held = []
        elif opened is not None and line == f"{margin}```":
            found.append(Block(page, *opened, "\n".join(held)))
            opened = None
        else:
            held.append(line.removeprefix(margin))
    return found


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block with what they print.

    Raises:
        ValueError: It begins with something that is no command.
    """
    text = ""
    output: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if text:
                yield Command(text, tuple(output))
            text, output = line[2:], []
        elif line.startswith("> ") and text and not output:
            text += f"\n{line[2:]}"
        elif not text:
            raise ValueError(f"{block.page.name}:{block.line}: {line!r} is no command")
        else:
            output.append(line)
    if text:
        yield Command(text, tuple(output))


def inline_commands(page: Path) -> list[str]:
    """Commands that stand within sentences, each once."""
    outside = re.sub(r"(?ms)^ *```.*?^ *```$|<!--.*?-->", "", page.read_text())
    return list(dict.fromkeys(" ".join(each.split()) for each in _INLINE.findall(outside)))


def mismatch(shown: tuple[str, ...], printed: str) -> str:
    """Say where what was printed differs from what the page shows; empty when it does not."""
    wanted = list(shown)
    while wanted and not wanted[-1].strip():
        wanted.pop()
    pattern = "\n".join("\0" if each.strip() in {"…", "..."} else each for each in wanted)
    expression = re.escape(pattern).replace("…", ".*")
    # A line of dots alone takes its line end with it, so that it may stand for no line at all.
    expression = expression.replace("\0\\\n", "(?:.*\n)*").replace("\\\n\0", "(?:\n.*)*")
    expression = expression.replace("\0", "(?:.*\n?)*")
    text = "\n".join(line.rstrip() for line in printed.rstrip("\n").splitlines())
    if re.fullmatch(expression, text):
        return ""
    return f"the page shows\n{_indented(wanted)}\nbut it printed\n{_indented(text.splitlines())}"


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)
