"""`pumice rules`: the checks of admission, with reasons."""

import functools
import re
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pumice.cli.exits import UserError
from pumice.cli.options import Output
from pumice.cli.output import Format, paint, write, write_json

if TYPE_CHECKING:
    from pumice.webhook.rules.rule import Rule

EXAMPLES = (
    "pumice rules",
    "pumice rules JOB-DUP-TASK",
    "pumice rules minAvailable",
    'pumice rules "duplicated task name"',
    "pumice rules JOB-PLUGIN -o json",
)

_ANSWERS = {"enforce": "refuses", "warn": "warns", "off": "off"}


def _complete(incomplete: str) -> list[str]:
    """Codes that begin like what was typed."""
    from pumice.webhook.rules.catalogue import ALL, SCHEMA_CODES

    return [rule.code for rule in (*ALL, *SCHEMA_CODES) if rule.code.startswith(incomplete.upper())]


def rules(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE|WORD",
            autocompletion=_complete,
            help="A rule's code (the last word of its messages), the first part of codes, or words to search in rules, examples and messages, including Volcano's.",
        ),
    ] = None,
    output: Output = Format.TEXT,
) -> None:
    """List the rules of admission, search them, or explain one.

    Set the level of a rule with --set rule.CODE=enforce, warn or off; for one namespace use --set
    namespace.NAME.rule.CODE=….
    """
    wanted = (code or "").upper().strip("[]")  # the form at the end of a message
    found = _found(wanted, code or "")
    if output is Format.JSON:
        write_json([_as_json(rule) for rule in found])
    elif [rule.code for rule in found] == [wanted]:
        _explain(found[0])
    else:
        _list(found)


def _found(wanted: str, words: str) -> list["Rule"]:
    """The rule with a code, the rules whose codes begin with it, or the rules that contain words.

    Raises:
        UserError: No rule matches.
    """
    from pumice.api.fields import did_you_mean
    from pumice.webhook.rules.catalogue import ALL, SCHEMA_CODES, by_code

    if rule := by_code(wanted):
        return [rule]
    found = [rule for rule in ALL if rule.code.startswith(wanted)]
    found = found or [code for code in SCHEMA_CODES if code.code.startswith(wanted)]
    found = found or [rule for rule in (*ALL, *SCHEMA_CODES) if _mentions(rule, words)]
    if not found:
        hint = did_you_mean(wanted, [rule.code for rule in ALL]) or "; `pumice rules` lists them"
        raise UserError(f"there is no rule {wanted!r}{hint}")
    return found


def _mentions(rule: "Rule", words: str) -> bool:
    """True if a rule, or one of Volcano's phrases for it, contains words."""
    wanted = " ".join(words.lower().split())
    phrases = volcano_phrases().get(rule.code, ())
    texts = (rule.code, rule.title, rule.why, rule.example, *phrases)
    if any(wanted in " ".join(text.lower().split()) for text in texts):
        return True
    return any(re.search(re.escape(each.lower()).replace("…", ".+"), wanted) for each in phrases)


@functools.cache
def volcano_phrases() -> dict[str, list[str]]:
    """Fragments of Volcano's messages, by the code of the rule about the same mistake.

    Users and scripts search for them, so a message of the rule contains the fragment exactly; `…` is a placeholder for a
    value.
    """
    import yaml

    text = resources.files("pumice.cli").joinpath("volcano_phrases.yaml").read_text("utf-8")
    found: dict[str, list[str]] = yaml.safe_load(text)
    return found


def _as_json(rule: "Rule") -> dict[str, Any]:
    from pumice.webhook.rules.catalogue import section_of

    return {
        "code": rule.code,
        "section": section_of(rule.code).title,
        "title": rule.title,
        "why": rule.why,
        "example": rule.example,
        "level": rule.level,
        "stricter": rule.stricter,
        "reason": rule.reason,
        "since": rule.since,
    }


def _list(found: list["Rule"]) -> None:
    from pumice.webhook.rules.catalogue import sections

    width = max(len(rule.code) for rule in found)
    for number, (section, listed) in enumerate(sections(found)):
        if number:
            write("")
        write(paint(section.title, "bold"))
        for rule in listed:
            write(f"  {rule.code.ljust(width)}  {_ANSWERS[rule.level].ljust(7)}  {rule.title}")


def _explain(rule: "Rule") -> None:
    answer = _ANSWERS[rule.level]
    if rule.stricter:
        answer += "; Volcano admits it, so with strict-upstream=true it warns"
    write(f"{paint(rule.code, 'bold')}: {rule.title}")
    write(f"  why      {' '.join(rule.why.split())}")
    write(f"  not so   {' '.join(rule.example.split())}")
    write(f"  answer   {answer}")
    is_set = not rule.code.startswith("SCHEMA-")
    setting = f"--set rule.{rule.code}=enforce, warn or off" if is_set else "none"
    write(f"  setting  {setting}")
    write(f"  since    {rule.since}")
