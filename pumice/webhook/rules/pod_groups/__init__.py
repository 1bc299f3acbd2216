"""Rules on PodGroups."""
