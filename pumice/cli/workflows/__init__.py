"""What verbs say about JobFlows and CronJobs, from files and from a cluster."""
