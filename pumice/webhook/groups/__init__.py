"""Volcano's file of `--admission-conf`: which pods belong to a group, and what they get from it.

A group claims pods by namespace or annotation, and gives them labels of nodes, an affinity, tolerations and a
scheduler.

reading   YAML with a path and a line for whatever is wrong with it
parsing   the file as groups, with everything that is wrong or doubtful about it

`rules/resource_groups` finds the group of a pod, and `rules/pods/defaults` gives it what its group has. The webhook's
server follows the file (`server/groups`).
"""
