"""The rules of admission, a file an idea.

A room holds its `RULES` (code, title, why, example) and the functions that judge by them. `jobs`, `queues`,
`pod_groups`, `pods`, `cron_jobs`, `job_flows`, `job_templates` and `hyper_nodes` say which apply when, `catalogue` lists
all. Files of a kind begin with its name; `templates/` is about pod templates, and what has no such name is about
Jobs: `lifecycle_policies`, `partitions`, `dependencies`, `volumes`. To find a rule, search for its code.

`case` is what a rule is given and where it reports, `terms` what it takes for granted; `ratchet` judges updates.
"""
