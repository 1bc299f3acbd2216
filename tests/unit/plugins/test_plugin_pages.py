"""The plugin pages are what the plugins are."""

import re
import shutil
from pathlib import Path

import pytest

from pumice.plugins import builtin, problems
from tests.unit.plugins.support import job, task
from tools.plugin_pages import filled, main

PAGES = Path(__file__).parents[3] / "docs" / "plugins"


def test_the_pages_are_up_to_date() -> None:
    assert main(["--check", str(PAGES)]) == 0


@pytest.mark.parametrize("name", builtin().names)
def test_every_plugin_has_a_page_with_its_arguments_and_output(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")

    assert page.startswith(f"# Plugin {name}\n")
    assert f"<!-- generated: arguments {name} -->" in page
    assert "## Example" in page
    assert page.count("<!-- generated: ") >= 2


def test_a_stale_page_is_named_and_repaired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "env.md"
    shutil.copy(PAGES / "env.md", page)
    whole = page.read_text(encoding="utf-8")
    page.write_text(whole.replace("name: VC_TASK_INDEX", "name: VC_TASK_NUMBER"), encoding="utf-8")

    assert main(["--check", str(tmp_path)]) == 1
    assert f"not up to date, run `make generate`: {page}" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    assert page.read_text(encoding="utf-8") == whole
    page.write_text("<!-- generated: arguments new -->\n<!-- end generated -->\n")
    assert main([str(tmp_path)]) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f'{page}: unable to find job plugin "new"; known are svc, ')
    assert told.endswith("; list a new one in pumice/plugins/registry.py")


JOB = """# Plugin tensorflow
```yaml
metadata: {name: j}
spec:
  plugins: {tensorflow: []}
  tasks: [{name: worker, replicas: 2, template: {spec: {containers: [{name: main}]}}}]
```
"""


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("plugins", "| [`tensorflow`](tensorflow.md) |"),
        ("arguments tensorflow", "| `--port=…` | port | `2222` |"),
        ("arguments env", "None; whatever is given is ignored"),
        ("objects", "kind: NetworkPolicy"),
        ("pod worker 1", '"index":1}}'),
        ("annotations", "{}"),
        ("file note.py", "```python\nnote = 1\n```"),
    ],
)
def test_blocks_are_filled(what: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "note.py").write_text("note = 1\n")
    page = f"{JOB}<!-- generated: {what} -->\nold\n<!-- end generated -->\n"

    after = filled(page, builtin(), tmp_path)

    assert expected in after
    assert "old" not in after
    assert filled(after, builtin(), tmp_path) == after


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nonsense", "nothing is generated for 'nonsense'"),
        ("arguments svk", 'did you mean "svc"'),
        ("pod ps 0", "no task 'ps'"),
    ],
)
def test_a_block_that_asks_for_nothing_there_is_an_error(
    what: str, message: str, tmp_path: Path
) -> None:
    page = f"{JOB}<!-- generated: {what} -->\n<!-- end generated -->\n"

    with pytest.raises(ValueError, match=message):
        filled(page, builtin(), tmp_path)


def test_a_pod_is_shown_with_what_the_plugin_of_the_page_adds(tmp_path: Path) -> None:
    waiting = (
        JOB.replace("# Plugin tensorflow", "# Plugin pytorch")
        .replace("tensorflow: []", "pytorch: [--wait-master-enabled]")
        .replace("[{name: worker", "[{name: master, replicas: 1}, {name: worker")
    )
    page = f"{waiting}<!-- generated: pod worker 1 -->\n<!-- end generated -->\n"

    shown = filled(page, builtin(), tmp_path).partition("<!-- generated")[2]

    assert "name: RANK\n" in shown
    assert "VC_WORKER_HOSTS" not in shown  # of plugin svc
    assert "replicas" not in shown
    assert shown.endswith(
        "initContainers:\n    - name: wait-for-master\n```\n<!-- end generated -->\n"
    )


def recipes() -> list[list[str]]:
    rows = (PAGES / "roles.md").read_text(encoding="utf-8").partition("## Recipes")[2].splitlines()
    return [re.findall(r"`([^`]+)`", row) for row in rows if row.count("`") >= 2 and row[0] == "|"]


@pytest.mark.parametrize("arguments", recipes(), ids=lambda arguments: arguments[0])
def test_the_recipes_of_roles_can_be_followed(arguments: list[str]) -> None:
    tasks = re.findall(r"(\w+)(?:,|$)", arguments[0])
    own = job("j", *(task(name, 2) for name in tasks), plugins={"roles": arguments})

    assert len(arguments) == 2
    assert problems(own, builtin()) == ((), ())
