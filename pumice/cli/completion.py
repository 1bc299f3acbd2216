"""`pumice completion`: scripts with which a shell completes verbs, options and values."""

import enum
from typing import Annotated

import typer

from pumice.cli.output import write_document

__all__ = ["EXAMPLES", "completion"]

EXAMPLES = (
    "source <(pumice completion bash)",
    "pumice completion bash > /etc/bash_completion.d/pumice",
    "pumice completion zsh > ~/.zfunc/_pumice",
    "pumice completion fish > ~/.config/fish/completions/pumice.fish",
)


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
