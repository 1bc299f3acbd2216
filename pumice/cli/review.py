"""`pumice review`: reads one AdmissionReview and writes the response."""

from pathlib import Path
from typing import Annotated

import typer

from pumice.cli import exits
from pumice.cli.files.contents import STDIN, read_bytes
from pumice.cli.files.manifests import read_objects
from pumice.cli.options import AdmissionConf, Settings, State
from pumice.cli.output import json_text, note, write_document

EXAMPLES = (
    "pumice review /jobs/validate < review.json",
    "pumice review /jobs/mutate --state queues.yaml < review.json | jq .response",
)


def review(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="Path of the server, for example /jobs/mutate."),
    ],
    state: State = None,
    admission_conf: AdmissionConf = None,
    settings: Settings = None,
) -> None:
    """Answer the AdmissionReview on stdin as the server would.

    Queues `root` and `default` always exist; other queues must be in --state. Exit code 1: refused; 2: the review
    cannot be read (the answer says why).
    """
    from pumice.cli.files.checking import admission, read_groups, read_settings
    from pumice.webhook.endpoints import ENDPOINTS

    groups = read_groups(admission_conf)
    chosen = read_settings(settings)
    if state and "-" in state:
        raise exits.UserError("--state -: stdin holds the review, give the state as a file")
    judge = admission(read_objects(state or (), may_be_empty=True), chosen, groups, whole=True)
    if path not in ENDPOINTS:
        hint = "; `pumice lint FILE` validates manifests" if Path(path).is_file() else ""
        known = ", ".join(ENDPOINTS)
        raise exits.UserError(f"{path}: there is no such path, known are {known}{hint}")
    body = read_bytes(STDIN)
    if not body.strip():
        raise exits.UserError("stdin is empty, expected an AdmissionReview")
    answer = judge.answer(path, body)
    write_document(json_text(answer.body))
    if answer.malformed:
        note(f"pumice review: stdin holds no AdmissionReview that {path} understands")
        exits.finish(exits.USAGE)
    exits.finish(exits.FINE if answer.outcome in ("allowed", "patched") else exits.REFUSED)
