"""`pumice completion`: scripts with which a shell completes verbs, options and values."""

import enum
import re
from typing import Annotated

import typer

from pumice.cli.output import write_document

EXAMPLES = (
    "source <(pumice completion bash)",
    "pumice completion bash > /etc/bash_completion.d/pumice",
    "pumice completion zsh > ~/.zfunc/_pumice",
    "pumice completion fish > ~/.config/fish/completions/pumice.fish",
)

_END = re.compile(r"[.;] |\.$")


class _Shell(enum.StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[_Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.")],
) -> None:
    """Print the script that completes commands in a shell.

    For bash and zsh, add `source <(pumice completion SHELL)` to ~/.bashrc, or to ~/.zshrc after compinit; for fish see below. The script runs `pumice`, which
    must be on PATH.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    from pumice.cli.app import COMPLETION_VARIABLE

    script = get_completion_script(
        prog_name="pumice", complete_var=COMPLETION_VARIABLE, shell=shell.value
    )
    write_document(script)


def prepare() -> None:
    """Make typer answer a shell that asks what may follow, with the first sentence of each help.

    By default it has rich render them, which takes `[/MEMORY]` for its markup and breaks lines where the terminal is narrow;
    a shell would take each part for a word of its own.
    """
    from typer import _completion_classes
    from typer.completion import completion_init  # type: ignore[attr-defined]

    _completion_classes._sanitize_help_text = _first_sentence  # noqa: SLF001
    completion_init()


def _first_sentence(text: str) -> str:
    return _END.split(" ".join(text.split()), maxsplit=1)[0]
