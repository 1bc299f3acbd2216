"""Pod templates: what the API server would refuse when the pods are created, said before."""
