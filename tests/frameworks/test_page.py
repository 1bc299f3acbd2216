"""The Job with which the page about Jobs on this machine begins; the machine may lack PyTorch, an image has it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from tests.docs.pages import ROOT, blocks, commands
from tests.docs.running import run_command, search_path
from tests.frameworks.running import Images


def test_the_first_job_of_the_page_prints_what_it_shows(images: Images, tmp_path: Path) -> None:
    page = blocks(ROOT / "docs" / "run-locally.md")
    (manifest,) = (each for each in page if each.file == "train.yaml")
    (tmp_path / manifest.file).write_text(manifest.text)
    (block,) = (each for each in page if "torch" in each.words)
    (command,) = commands(block)
    layers = ":".join(map(str, images["base"]))
    with_image = command.text.replace("train.yaml", f"train.yaml --image torch={layers}")
    assert with_image != command.text
    environment = {**os.environ, "PATH": search_path({}, whole=True)}
    assert not run_command(replace(command, text=with_image), tmp_path, environment, 0)
