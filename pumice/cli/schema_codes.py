"""Descriptions of codes that are not rules: errors of the schemas of kinds, and of the API server itself.

They have no settings, so they are separate from the rules.
"""

from pumice.webhook.rules.rule import Rule

__all__ = ["SCHEMA_CODES"]

SCHEMA_CODES = (
    Rule(
        "SCHEMA-KIND",
        "there is a kind of that name in that version of the group",
        "The API server has nothing to compare the object with, and kubectl finds no place for it.",
        "apiVersion: batch.volcano.sh/v1alpha1, kind: job",
    ),
    Rule(
        "SCHEMA-TYPE",
        "a field has the type that its kind gives it",
        "The API server cannot decode a string in place of an integer, or a list in place of an object.",
        'maxRetry: "3"',
    ),
    Rule(
        "SCHEMA-REQUIRED",
        "a field that must be there is there",
        "The API server refuses an object without it.",
        "kind: HyperNode, spec: {members: […]} without tier",
    ),
    Rule(
        "SCHEMA-ENUM",
        "a field has one of the values that there are",
        "The API server refuses all others, in upper and lower case as they are written.",
        "jobRetainPolicy: keep",
    ),
    Rule(
        "SCHEMA-BOUNDS",
        "a number is neither too small nor too large",
        "The API server refuses what is out of the field's bounds.",
        "replicas: -1",
    ),
    Rule(
        "SCHEMA-LENGTH",
        "a string is neither too short nor too long",
        "The API server refuses what is out of the field's bounds.",
        'flows: [{name: ""}]',
    ),
    Rule(
        "SCHEMA-PATTERN",
        "a string matches the pattern of its field",
        "The API server refuses a string that does not match.",
        "priorityClassName: Not A Name",
    ),
    Rule(
        "SCHEMA-ITEMS",
        "a list or a map has neither too few nor too many entries",
        "The API server refuses what is out of the field's bounds.",
        "kind: HyperNode, spec: {tier: 1, members: []}",
    ),
    Rule(
        "SCHEMA-DUPLICATE",
        "no entry of a list is there twice",
        "The API server takes some lists for sets.",
        "the same item twice",
    ),
    Rule(
        "SCHEMA-COMBINATION",
        "fields that belong together, or exclude each other, do so",
        "The API server refuses other combinations.",
        "selector: {exactMatch: {…}, regexMatch: {…}}",
    ),
    Rule(
        "SCHEMA-NAME",
        "an object has a name, and a namespace, that it can have",
        "The API server stores every object under its name, in its namespace.",
        "metadata: {name: My_Job}",
    ),
    Rule(
        "SCHEMA-LABELS",
        "an object has labels and annotations that it can have",
        "The API server refuses others: keys and the values of labels are short and plain.",
        "metadata: {labels: {team: vision lab}}",
    ),
    Rule(
        "SCHEMA-UNKNOWN",
        "a field exists",
        "The API server drops a field that the kind does not have; kubectl refuses it unless told not to look.",
        "spec: {minAvalable: 3}",
        level="warn",
    ),
    Rule(
        "SCHEMA-NULL",
        "an entry of a map has a value",
        "The API server removes an entry that is null, as if it were not there.",
        "plugins: {pytorch: }",
        level="warn",
    ),
    Rule(
        "SCHEMA-TWICE",
        "an object is in the files once",
        "If both are applied, the last one replaces the first. Only `pumice lint` reports this: an API server gets one object at a time.",
        "two Jobs with metadata: {name: train, namespace: default}",
        level="warn",
    ),
)
