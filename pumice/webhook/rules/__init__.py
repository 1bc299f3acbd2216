"""The rules of admission: a folder for each kind, a file for each topic.

Each folder has `checks` (which rules apply, and when), `defaults`, and a file for each topic: the rule on
`spec.minAvailable` of a Job is in `jobs/min_available.py`, the one on `spec.tasks[].dependsOn` in `jobs/depends_on.py`.
`templates/` is about pod templates, `flows/` about CronJobs, JobFlows and JobTemplates. A file holds its rules (code,
title, why, example) and the functions that check them. Files outside the folders are for several kinds. To find a rule
by its code, search for the code.

`case` is what a rule gets and where it reports, `rule` describes a rule and the settings that rules read, `updates`
compares an object with the stored one, `catalogue` lists all rules.
"""
