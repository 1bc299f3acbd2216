"""`pumice completion`: scripts with which a shell completes verbs, options and values."""

import enum
from typing import Annotated

import typer

from pumice.cli.output import write_document

__all__ = ["EXAMPLES", "VARIABLE", "completion", "prepare"]

EXAMPLES = (
    "source <(pumice completion bash)",
    "pumice completion bash > /etc/bash_completion.d/pumice",
    "pumice completion zsh > ~/.zfunc/_pumice",
    "pumice completion fish > ~/.config/fish/completions/pumice.fish",
)

VARIABLE = "_PUMICE_COMPLETE"
"""Variable with which the shell's script asks for completions."""


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

    script = get_completion_script(prog_name="pumice", complete_var=VARIABLE, shell=shell.value)
    write_document(script)


def prepare() -> None:
    """Let the command answer completion scripts."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
