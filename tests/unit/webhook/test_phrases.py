"""Volcano's phrases: each one stands in a message about the mistake by which users know it."""

import functools
import re
from collections import defaultdict

from pumice.cli.rules import volcano_phrases
from pumice.webhook.rules.catalogue import ALL, SCHEMA_CODES
from tests.support.policies import CODE, POLICIES
from tests.unit.webhook.reviewing import answer, rows
from tests.unit.webhook.template_rows import template_rows

_OTHER_TYPES = re.compile(
    r"\b(texts?|whole numbers?|mappings?|arrays?|dict(s|ionary|ionaries)?|tuples?)\b"
)
_CODE = re.compile(r" \[([A-Z-]+)\]$")


@functools.cache
def said() -> dict[str, set[str]]:
    """The messages that the rows of the case tables get, by code."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows():
        response = answer(row.admission(), row.path, row.request)
        causes = response.get("status", {}).get("details", {}).get("causes", ())
        for text in (*(cause["message"] for cause in causes), *response.get("warnings", ())):
            if code := _CODE.search(text):
                found[code[1]].add(text)
    for template in template_rows():
        case = template.judged()
        for each in (*case.errors, *case.warnings):
            found[each.code].add(each.message)
    return found


def test_each_phrase_stands_in_a_message_of_its_rule() -> None:
    messages = said()
    missing = [
        (code, phrase, sorted(messages[code])[:3])
        for code, phrases in volcano_phrases().items()
        for phrase in phrases
        if not any(map(pattern(phrase).search, messages[code]))
    ]
    assert missing == []
    assert volcano_phrases().keys() <= {rule.code for rule in (*ALL, *SCHEMA_CODES)}


def test_rules_and_messages_name_types_as_kubernetes_does() -> None:
    """String, integer, number, boolean, list, object; what is found in an object stands in quotation marks."""
    rules = [f"{rule.code}: {rule.title}. {rule.why}" for rule in (*ALL, *SCHEMA_CODES)]
    messages = [re.sub(r'"[^"]*"', "", text) for texts in said().values() for text in texts]
    assert [text for text in (*rules, *messages) if _OTHER_TYPES.search(text)] == []


def test_each_message_of_a_policy_has_a_phrase_of_its_rule() -> None:
    phrases = volcano_phrases()
    texts = " ".join(file.read_text() for file in sorted(POLICIES.glob("*.yaml")))
    joined = re.sub(r"[\"'] \+ [\"']", "", " ".join(texts.split()))
    messages = re.split(r"- expression: ", joined)
    lacking = [
        code
        for message in messages
        for code in CODE.findall(message)
        if not any(pattern(each).search(message) for each in phrases.get(code, ("",)))
    ]
    assert lacking == []


def pattern(phrase: str) -> re.Pattern[str]:
    """A phrase with a value for each `…`."""
    return re.compile(".*".join(re.escape(part.strip()) for part in phrase.split("…")), re.DOTALL)
