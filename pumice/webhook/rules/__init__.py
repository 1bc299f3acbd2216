"""The rules of admission, a file an idea.

A room holds its `RULES` (code, title, why, example) and the functions that judge by them;
`catalogue` collects them, `jobs`, `queues`, `pod_groups` and `pods` say which apply when.
"""
