"""What `pumice dev` is made of: the cluster in one process, its nodes, its kubeconfig, its first objects."""
