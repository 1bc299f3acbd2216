"""Volcano's file of `--admission-conf`: which pods belong to a group, and what they get from it.

A group claims pods by namespace or annotation, and gives them labels of nodes, an affinity, tolerations and a
scheduler.

models    what a person may write, as pydantic models
parsing   the file as groups, with errors and warnings

`rules/resource_groups` finds the group of a pod, and `rules/pods/defaults` gives it what its group has. The webhook's
server follows the file (`server/groups`).
"""
