"""Labels, annotations and fixed names that travel between the parts.

Everything under `volcano.sh/`, `scheduling.volcano.sh/` and `scheduling.k8s.io/` is Volcano's and is
spelled exactly so; what is ours alone is under `pumice.dev/`.
"""

# Set on pods by the controller, read by plugins and the scheduler.
TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"
JOB_FORWARDING = "volcano.sh/job-forwarding"
TEMPLATE_UID = "volcano.sh/template-uid"
PARTITION_ID = "volcano.sh/partition-id"
QUEUE_NAME = "volcano.sh/queue-name"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"

# Set on the Jobs of JobFlows, as labels and annotations: `<namespace>.<name>` of what they were made from.
CREATED_BY_JOB_FLOW = "volcano.sh/createdByJobFlow"
CREATED_BY_JOB_TEMPLATE = "volcano.sh/createdByJobTemplate"

# Kubernetes' own.
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""On a namespace, set by the API server."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""On an object: the manifest that kubectl has applied."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
"""On a pod of an Indexed Job: its index; an annotation, and in newer versions a label, too."""

# Which PodGroup a pod belongs to.
GROUP_NAME = "scheduling.k8s.io/group-name"
GROUP_NAME_VOLCANO = "scheduling.volcano.sh/group-name"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
NAMESPACE_QUEUE = "scheduling.volcano.sh/queue-name"
"""Annotation of a namespace, and of pods of other owners: the queue of their PodGroups."""
NETWORK_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
NETWORK_TOPOLOGY_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"
QUEUE_ALLOCATION_GATE = "scheduling.volcano.sh/queue-allocation-gate"

# Task topology.
TOPOLOGY_AFFINITY = "volcano.sh/task-topology-affinity"
TOPOLOGY_ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
TOPOLOGY_TASK_ORDER = "volcano.sh/task-topology-task-order"
TOPOLOGY_JSON = "volcano.sh/task-topology"
"""The plugin's arguments as a JSON text (`docs/design/bucket.md` of Volcano)."""

# Node groups.
NODE_GROUP = "volcano.sh/nodegroup-name"
NODE_GROUP_LIMITS = "volcano.sh/nodegroup-resource-limits"

# How nodes are scored for a pod: strategies and weights of resources; Volcano's guide and its design spell the second one differently.
SCORING_TYPE = "volcano.sh/resource-strategy-scoring-type"
SCORING_WEIGHTS = frozenset(
    {"volcano.sh/resource-strategy-scoring-weight", "volcano.sh/resource-strategy-weight"}
)

# Scheduling hints copied from a Job to its pods.
NUMA_POLICY = "volcano.sh/numa-topology-policy"
PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN_TIME = "volcano.sh/cooldown-time"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
COPIED_LABELS = (PREEMPTABLE, COOLDOWN_TIME)
"""Those that go from a Job to its pods, and from pods of other owners to their PodGroups, as labels."""
COPIED_ANNOTATIONS = (*COPIED_LABELS, REVOCABLE_ZONE)
"""The same as annotations, in addition to one of `BUDGETS`."""
BUDGETS = (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE)
TASK_PRIORITY = "volcano.sh/task-priority"
SLA_WAITING_TIME = "volcano.sh/sla-waiting-time"

# Queues.
HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
DEFAULT_QUEUE = "default"
ROOT_QUEUE = "root"

# Pods by resource group.
RESOURCE_GROUP = "volcano.sh/resource-group"

# Set on Jobs by the controller of CronJobs.
CRON_JOB_SCHEDULED = "volcano.sh/cronjob-scheduled-timestamp"

HCCL_RANK = "hccl/rankIndex"

# Ours.
WIRED = "pumice.dev/wired"
"""On a pod: the plugins that have been applied, so that they are not applied again."""
PLUGINS = "pumice.dev/plugins"
"""On a pod template of another controller: the job plugins to apply."""
TASKS = "pumice.dev/tasks"
"""Beside `PLUGINS`: which pods have which role, for example `scheduler=1,server=2,worker`."""
WIRED_FOR = "pumice.dev/wired-for"
"""On an object that plugins want for the pods of another controller: the kind of the pods' owner."""
RESTART_ON_SCALING = "pumice.dev/restart-on-scaling"
"""On a Job: `true` restarts pods that started before it was scaled, one task after the other."""
SCALE = "pumice.dev/scale"
"""On a pod of such a Job: a fingerprint of the sizes of its tasks when the pod was made."""
ADMISSION = "pumice.dev/admission"
"""Label of a pod of a Job; see `ADMISSION_UNNEEDED`."""
ADMISSION_UNNEEDED = "unneeded"
"""Its value on a pod without any annotation that our admission of pods could act on; it is not asked about such a pod."""
ONCE_PER_LOCAL_DAY = "pumice.dev/once-per-local-day"
"""On a CronJob: `true` runs a Job also for local times that a change of the clock skips, and once for those that it
repeats.
"""
REPLACE_WHEN_GONE = "pumice.dev/replace-when-gone"
"""On a CronJob: with `true` `concurrencyPolicy: Replace` waits until the Jobs that it deletes and their pods are gone.
"""
ON_FAILURE = "pumice.dev/on-failure"
"""On a JobFlow: `stop` terminates the Jobs that run when one has failed, `continue` leaves them alone."""
FLOW_RETRIES = "pumice.dev/flow-retries"
"""On a JobFlow: how often a flow whose Job has failed gets another Job."""
SCHEDULE_SEEN = "pumice.dev/schedule-seen"
"""On a CronJob, written by the controller: a fingerprint of its schedule, and the time of its last edit if there was
one.
"""
RUN_DURATION = "pumice.dev/run-duration"
"""On a pod of a simulated node: how long it runs before it succeeds, for example `2s`."""
EXIT_CODE = "pumice.dev/exit-code"
"""On a pod of a simulated node: the exit code with which it ends."""
DURATION = "pumice.dev/duration"
"""On a Job, PodGroup or pod: how long its pods run, as its user expects, for example `90m`; forecasts count on it."""
QUEUE = "pumice.dev/queue"
"""On a pod, written with its Binding: the queue under which it was bound, to which it is charged until it ends."""
NAMESPACES = "pumice.dev/namespaces"
"""On a Queue: the namespaces that may use it, see `api.queue_users`."""

QUEUE_ANNOTATIONS = (HIERARCHY, HIERARCHY_WEIGHTS, NODE_GROUP_LIMITS, NAMESPACES)
"""Annotations of Queues that admission judges."""

DEFAULT_SCHEDULER = "volcano"
"""`schedulerName` of the pods that Pumice places, unless configured otherwise."""
