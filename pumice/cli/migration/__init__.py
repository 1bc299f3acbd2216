"""What `pumice migrate` knows: objects of a Volcano cluster, what Pumice would do otherwise, and how much that harms."""
