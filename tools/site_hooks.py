"""What `make docs` changes in a page before it becomes HTML; the pages are written to be read on a code host, too."""

import re
from typing import Any

_FENCE = re.compile(r"^( *)```(yaml|json|python|console)[ \t]+(\S.*)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+)([^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Give fences the name of their file as a title, and name files outside of `docs` instead of linking to them."""
    depth = page.file.src_uri.count("/")

    def link(found: re.Match[str]) -> str:
        text, up, path = found[1], found[2], found[3]
        if up.count("../") <= depth:
            return found[0]
        return text if path.rstrip("/") in text else f"{text} (`{path}`)"

    return _LINK.sub(link, _FENCE.sub(_titled, markdown))


def _titled(found: re.Match[str]) -> str:
    """A fence without the words that say how tests run it."""
    margin, language, words = found.groups()
    if language == "console":
        return f"{margin}```console"
    return f'{margin}```{language} title="{words.split()[0]}"'
