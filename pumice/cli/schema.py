"""`pumice schema`: JSON Schemas of the kinds, for editors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.cli.exits import UserError
from pumice.cli.output import json_text, note, table, write, write_document

if TYPE_CHECKING:
    from pumice.api.kinds import Kind

EXAMPLES = (
    "pumice schema",
    "pumice schema job > job.json",
    "pumice schema --directory schemas",
    "pumice schema vcjob queue --directory schemas",
)


def schema(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KIND",
            help="A kind, its plural or its short name, as in kubectl: job, queues, pg.",
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "-d",
            "--directory",
            metavar="DIR",
            help="Write KIND.json of each kind, or of all kinds, into this directory.",
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of a kind, for editors.

    Without KIND, list the kinds.

    An editor with a YAML language server, such as VS Code with the extension "YAML" of Red Hat, then completes fields,
    shows their descriptions, and marks misspelt ones. Name the schema in the first line of a manifest:

    \b
      # yaml-language-server: $schema=schemas/job.json

    or map files to schemas in the settings of the editor (VS Code: .vscode/settings.json):

    \b
      {"yaml.schemas": {"schemas/job.json": ["jobs/*.yaml"]}}
    """  # noqa: D301 - \b is for the parser of options: do not wrap
    chosen = [_named(name) for name in kinds or ()]
    if directory is not None:
        _write_files(directory, chosen)
    elif not chosen:
        _list()
    elif len(chosen) > 1:
        raise UserError("several kinds need --directory DIR, which gets a file for each")
    else:
        write_document(_text(chosen[0]))


def _named(name: str) -> "Kind":
    """The kind with a name.

    Raises:
        UserError: There is no such kind.
    """
    from pumice.api.fields import did_you_mean
    from pumice.api.kinds import VOLCANO

    names = {each: kind for kind in VOLCANO for each in kind.words}
    found = names.get(name.lower())
    if found is None:
        hint = did_you_mean(name, names) or "; `pumice schema` lists the kinds"
        raise UserError(f"there is no schema of a kind {name!r}{hint}")
    return found


def _text(kind: "Kind") -> str:
    import msgspec

    from pumice.api.crds.json_schema import json_schema

    return json_text(msgspec.json.format(msgspec.json.encode(json_schema(kind)), indent=2))


def _write_files(directory: Path, chosen: list["Kind"]) -> None:
    """Write the schemas of kinds, or of all.

    Raises:
        UserError: The directory or a file cannot be written.
    """
    from pumice.api.kinds import VOLCANO

    wanted = chosen or list(VOLCANO)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for kind in wanted:
            (directory / f"{kind.kind.lower()}.json").write_text(
                f"{_text(kind)}\n", encoding="utf-8"
            )
    except FileExistsError:
        raise UserError(f"{directory}: is a file, expected a directory") from None
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be written: {error.strerror}") from None
    note(f"wrote {', '.join(f'{kind.kind.lower()}.json' for kind in wanted)} to {directory}")


def _list() -> None:
    from pumice.api.kinds import VOLCANO

    rows = [(kind.kind.lower(), ",".join(kind.short_names), kind.api_version) for kind in VOLCANO]
    write(table(("kind", "short names", "apiVersion"), rows))
