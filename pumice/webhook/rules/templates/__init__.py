"""Pod templates: problems for which the API server would refuse the pods, reported when the template is applied."""
