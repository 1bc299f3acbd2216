"""The image: two stages, the wheel alone in the second, and nobody who could write to it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """The instructions of each stage of the Dockerfile."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    found: list[list[Instruction]] = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            if word == "FROM":
                found.append([])
            found[-1].append((word, rest.strip()))
    return found


def of(stage: list[Instruction], word: str) -> list[str]:
    return [rest for each, rest in stage if each == word]


def test_the_first_stage_builds_and_installs_the_locked_wheel() -> None:
    build, _ = stages()
    assert [each for each in of(build, "RUN") if re.search(r"\binstall uv==\d", each)], (
        "uv is pinned"
    )
    (steps,) = (each for each in of(build, "RUN") if "uv build" in each)
    assert "uv export --locked" in steps
    assert "--require-hashes" in steps
    assert "dist/*.whl" in steps


def test_the_second_stage_takes_what_was_installed_and_nothing_of_the_sources() -> None:
    _, final = stages()
    assert of(final, "COPY") == ["--from=build /opt/pumice /opt/pumice"]
    assert not of(final, "RUN")
    assert not of(final, "ADD")


def test_both_stages_have_the_same_python() -> None:
    bases = {of(stage, "FROM")[0].partition(" ")[0] for stage in stages()}
    assert len(bases) == 1, "the environment of the first stage runs in the second"
    assert re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", bases.pop()), "it is pinned"


def test_it_runs_as_the_user_that_the_chart_demands() -> None:
    _, final = stages()
    ((user, _, group),) = (each.partition(":") for each in of(final, "USER"))
    values = (ROOT / "charts/pumice/values.yaml").read_text()
    assert f"runAsUser: {user}\n" in values
    assert f"runAsGroup: {group}\n" in values
    assert int(user) > 0


def test_its_command_is_pumice() -> None:
    _, final = stages()
    assert of(final, "ENTRYPOINT") == ['["pumice"]']


def test_what_the_first_stage_copies_exists_and_is_not_ignored() -> None:
    build, _ = stages()
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ignored[0] == "*"
    for each in of(build, "COPY"):
        *sources, _ = each.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored, source
