"""The nouns: Job, Queue, PodGroup, Pod, Node, quantities, names, field errors, admission reviews.

Lowest layer: everything else reads these modules, they read nothing else of Pumice.
"""
