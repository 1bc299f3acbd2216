"""The scheduler's configuration file, for the verbs that take one."""

from pathlib import Path
from typing import TYPE_CHECKING

from pumice.cli.exits import UserError
from pumice.cli.manifests import read_bytes
from pumice.cli.output import note

if TYPE_CHECKING:
    from pumice.scheduler import Config

__all__ = ["read_config"]


def read_config(path: Path | None) -> "Config":
    """Read a configuration in Volcano's format; Pumice's defaults without a file.

    Raises:
        UserError: The file cannot be read, or what it says cannot be.
    """
    from pumice.scheduler import ConfigError, load_config

    text = None
    if path is not None:
        try:
            text = read_bytes(path).decode()
        except UnicodeDecodeError:
            raise UserError(f"{path}: must be UTF-8 text") from None
    try:
        config = load_config(text)
    except ConfigError as error:
        raise UserError(f"{path}: {error}" if path else str(error)) from None
    for warning in config.warnings:
        note(f"{path or 'configuration'}: {warning}")
    return config
