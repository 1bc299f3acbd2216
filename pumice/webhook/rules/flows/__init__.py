"""Rules on CronJobs, JobFlows and JobTemplates, which all hold Jobs."""
