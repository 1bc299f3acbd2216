"""The scheduler's configuration file, for the verbs that take one."""

from pathlib import Path
from typing import TYPE_CHECKING

from pumice.cli.exits import UserError
from pumice.cli.output import Format, note, write, write_json

if TYPE_CHECKING:
    from pumice.scheduler import Config


def read_config(path: Path | None, text: str | None = None) -> "Config":
    """Read a configuration in Volcano's format, or a ConfigMap with one; without a file, Pumice's defaults.

    Args:
        path: The file.
        text: Its content, if it was read before.

    Raises:
        UserError: The file cannot be read, or its content is invalid.
    """
    from pumice.cli import lean

    with lean.importing():
        from pumice.scheduler import ConfigError, load_config

    try:
        config = load_config(config_text(path) if text is None else text)
    except ConfigError as error:
        raise UserError(f"{path}: {error}" if path else str(error)) from None
    for warning in config.warnings:
        note(f"{path or 'configuration'}: {warning}")
    return config


def report_config(path: Path | None, output: Format) -> int:
    """Print the problems of a configuration, and return the exit code.

    Raises:
        UserError: The file cannot be read.
    """
    from pumice.scheduler import ConfigError, load_config

    errors: list[str] = []
    warnings: tuple[str, ...] = ()
    try:
        config = load_config(config_text(path))
    except ConfigError as error:
        errors = [str(each) for each in error.errors]
    else:
        warnings = config.warnings
    if output is Format.JSON:
        write_json({"usable": not errors, "errors": errors, "warnings": list(warnings)})
    else:
        where = path or "the default configuration"
        for kind, texts in (("error", errors), ("warning", warnings)):
            for text in texts:
                write(f"{where}: {kind}: {text}")
        write(f"{where}: {'cannot be used' if errors else 'can be used'}")
    return 1 if errors else 0


def config_text(path: Path | None) -> str | None:
    """The content of a configuration file; None without a file.

    Raises:
        UserError: It cannot be read.
    """
    if path is None:
        return None
    from pumice.cli.files.contents import read_bytes

    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError:
        raise UserError(f"{path}: must be UTF-8 text") from None
