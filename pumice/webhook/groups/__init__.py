"""Resource groups: which pods belong together, and what they get on their way in.

Volcano's file of `--admission-conf`: a group claims pods by namespace or annotation, and gives them
labels of nodes, an affinity, tolerations and a scheduler.

model     a group, and all of them compiled so that a pod finds its own in a few lookups
reading   YAML with a path and a line for whatever is wrong with it
parsing   the file as groups, with everything that is wrong or doubtful about it

What a pod gets from its group is a rule of pods (`rules/pods/resource_groups`), which knows a group by what it gives; the
webhook's server follows the file (`server/groups`).
"""
