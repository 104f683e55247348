"""The panels of the dashboards, from which make-dashboards writes Grafana's JSON.

Facts of a cluster are the maximum over its servers, since a standby serves them, too. `C` selects the cluster that the
reader has chosen; `$__rate_interval` is Grafana's window for rates, which fits the scrape interval.
"""
import dataclasses

C = 'cluster=~"$cluster"'
I = f'{C},instance=~"$instance"'
GPUS = f'{C},Hostname=~"$node"'


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    queries: tuple  # pairs of expression and legend
    unit: str = "short"
    kind: str = "timeseries"  # stat, timeseries or table
    width: int = 12  # of 24
    description: str = ""
    red_above: float | None = None  # a stat: red from here on


@dataclasses.dataclass(frozen=True)
class Variable:
    name: str
    label: str
    query: str
    several: bool = True


@dataclasses.dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    variables: tuple
    rows: tuple  # pairs of title and panels


CLUSTER = Variable("cluster", "Cluster", "label_values(berth_build_info, cluster)")
INSTANCE = Variable("instance", "Server", f"label_values(berth_build_info{{{C}}}, instance)")
QUEUE = Variable("queue", "Queue", f"label_values(berth_queue_jobs{{{C}}}, queue)")
RESOURCE = Variable("resource", "Resource", f"label_values(berth_capacity{{{C}}}, resource)", several=False)
JOB = Variable("job", "Job", f"label_values(berth_job_step{{{C}}}, exported_job)", several=False)
NODE = Variable("node", "Node", f"label_values(berth_agent_device_healthy{{{C}}}, node)")


def fact(metric, by=(), labels=""):
    """A gauge of the cluster."""
    groups = ", ".join(("cluster", *by))
    return f"max by ({groups}) ({metric}{{{C}{',' if labels else ''}{labels}}})"


def rate(metric, by=(), labels=""):
    """A counter of the cluster, a second."""
    groups = ", ".join(("cluster", *by))
    return f"max by ({groups}) (rate({metric}{{{C}{',' if labels else ''}{labels}}}[$__rate_interval]))"


def of_servers(metric):
    return f"{metric}{{{I}}}"


def rate_of_servers(metric):
    return f"rate({metric}{{{I}}}[$__rate_interval])"


def latency(title, metric, **more):
    """Median and 99th percentile of a histogram of each server."""
    return Panel(title, tuple(
        (f"histogram_quantile({quantile}, sum by (instance, le) (rate({metric}_bucket{{{I}}}[$__rate_interval])))",
         f"{name} {{{{instance}}}}") for quantile, name in ((0.5, "median"), (0.99, "99 %"))), "s", **more)


def wait(title, metric, **more):
    """Median and 90th percentile of a histogram of the cluster."""
    return Panel(title, tuple(
        (f"histogram_quantile({quantile}, max by (cluster, le) (rate({metric}_bucket{{{C}}}[$__rate_interval])))", name)
        for quantile, name in ((0.5, "median"), (0.9, "90 %"))), "s", **more)


def stat(title, expression, unit="short", **more):
    return Panel(title, ((expression, ""),), unit, "stat", 4, **more)


ALERTS = Panel("Alerts", (('ALERTS{alertname=~"Berth.*",alertstate="firing"}', ""),), kind="table", width=24,
               description="What each means: docs/operators/runbook.md.")

OVERVIEW = Dashboard("berth-cluster", "Berth / Cluster", (CLUSTER,), (
    ("Now", (
        stat("Nodes ready", f'berth:nodes{{{C},state="READY"}}'),
        stat("Nodes lost", f'berth:nodes{{{C},state="LOST"}}', red_above=1),
        stat("GPUs", f"berth:gpus:capacity{{{C}}}", description="Of nodes that accept tasks."),
        stat("GPUs allocated", f"berth:gpus:allocated_ratio{{{C}}}", "percentunit"),
        stat("GPUs used", f"berth:gpus:used_percent{{{C}}}", "percent", description="Mean utilization that drivers report."),
        stat("GPUs requested by pending tasks", f"berth:gpus:pending{{{C}}}"),
        ALERTS)),
    ("Work", (
        Panel("Jobs", ((f"berth:jobs{{{C}}}", "{{state}}"),)),
        Panel("Tasks", ((f"berth:tasks{{{C}}}", "{{state}}"),), description="LOST: on silent nodes, until these are fenced."),
        Panel("Jobs submitted and ended", (
            (f"berth:jobs_submitted:rate5m{{{C}}}", "submitted"),
            (rate("berth_jobs_ended_total", ("outcome",)), "{{outcome}}")), "ops"),
        Panel("Tasks placed and started", (
            (f"berth:tasks_bound:rate5m{{{C}}}", "placed"),
            (f"berth:tasks_started:rate5m{{{C}}}", "started"),
            (rate("berth_tasks_exited_total"), "ended")), "ops"),
        Panel("Refused starts, by fault", ((f"berth:starts_refused:rate10m{{{C}}}", "{{fault}}"),), "ops"),
        Panel("Tasks told to stop, by reason", ((rate("berth_tasks_released_total", ("reason",)), "{{reason}}"),), "ops",
              description="Evictions for other jobs are reclaimed, preempted and consolidated."),
        wait("Time to decision", "berth_decision_seconds",
             description="From submission, or the start time if that is later, to the first placement; also while held."),
        wait("Time to start", "berth_start_seconds", description="From placement until all tasks run."),
        Panel("Why jobs are pending", ((f'{fact("berth_jobs_waiting", ("reason",))} > 0', "{{reason}}"),),
              description="The most important reason of each of the 1,000 oldest. Of one job: berth job explain."),
        Panel("Jobs that are paused", ((fact("berth_jobs_paused", ("by",)), "by {{by}}"),),
              description="Their tasks are frozen where they are (docs/users/pause.md)."),
        Panel("Jobs with a condition", ((fact("berth_job_conditions", ("condition",)), "{{condition}}"),)))),
    ("GPUs", (
        Panel("GPUs", (
            (f"berth:gpus:capacity{{{C}}}", "capacity"),
            (f"berth:gpus:allocated{{{C}}}", "allocated"),
            (f"berth:gpus:free{{{C}}}", "free"),
            (f"berth:gpus:pending{{{C}}}", "requested by pending tasks"),
            (f"berth:gpus:wanted{{{C}}}", "of these by jobs that may be placed")),
            description="Free GPUs while jobs wait: berth job explain says why."),
        Panel("Free GPUs, by use of their nodes", (
            (fact("berth_free", (), 'resource="gpu",nodes="empty"'), "on nodes without tasks"),
            (fact("berth_free", (), 'resource="gpu",nodes="shared"'), "on nodes that are partly used")),
              description="Fragmentation: gangs of whole nodes find no place on nodes that are partly used."),
        Panel("GPUs allocated and used", (
            (f"100 * berth:gpus:allocated_ratio{{{C}}}", "allocated"),
            (f"berth:gpus:used_percent{{{C}}}", "used")), "percent"))),
    ("Nodes", (
        Panel("Nodes", ((f"berth:nodes{{{C}}}", "{{state}}"),)),
        Panel("Nodes that need attention", (
            (fact("berth_nodes_cordoned"), "cordoned"), (fact("berth_nodes_silent"), "silent"),
            (fact("berth_nodes_backing_off"), "backing off"), (fact("berth_nodes_failing"), "failing again and again"),
            (fact("berth_slow_nodes"), "slow"))))),
))

_RESOURCE = 'resource="$resource"'
_QUEUE = f'queue=~"$queue",{_RESOURCE}'
QUEUES = Dashboard("berth-queues", "Berth / Queues", (CLUSTER, QUEUE, RESOURCE), (
    ("Use", (
        Panel("Allocated", ((fact("berth_queue_allocated", ("queue",), _QUEUE), "{{queue}}"),),
              description="A queue counts its whole subtree; root is the cluster."),
        Panel("Requested by pending tasks", ((fact("berth_queue_pending", ("queue",), _QUEUE), "{{queue}}"),)),
        Panel("Requested by jobs that may be placed", ((fact("berth_queue_wanted", ("queue",), _QUEUE), "{{queue}}"),),
              description="Without those that are held, suspended or wait for others."),
        Panel("Allocated, of the limit", ((
            f'{fact("berth_queue_allocated", ("queue",), _QUEUE)} / ({fact("berth_queue_limit", ("queue",), _QUEUE)} > 0)',
            "{{queue}}"),), "percentunit", description="Queues with a limit only."),
        Panel("Guaranteed and deserved", (
            (f'{fact("berth_queue_guarantee", ("queue",), _QUEUE)} > 0', "guaranteed {{queue}}"),
            (f'{fact("berth_queue_deserved", ("queue",), _QUEUE)} > 0', "deserved {{queue}}")),
              description="Queues that have such amounts."),
        Panel("Allocated, of the cluster's capacity", ((
            f'{fact("berth_queue_allocated", ("queue",), _QUEUE)} / on (cluster) group_left () '
            f"({fact('berth_capacity', (), _RESOURCE)} > 0)", "{{queue}}"),),
              "percentunit"))),
    ("Jobs", (
        Panel("Jobs that run", ((fact("berth_queue_jobs", ("queue",), 'queue=~"$queue",kind="running"'), "{{queue}}"),)),
        Panel("Jobs that wait", ((
            f"""{fact("berth_queue_jobs", ("queue",), 'queue=~"$queue",kind="active"')}"""
            f""" - {fact("berth_queue_jobs", ("queue",), 'queue=~"$queue",kind="running"')}""", "{{queue}}"),),
              description="They have not ended and do not run: pending, held, restarting."),
        Panel("Jobs that are held", ((fact("berth_queue_jobs", ("queue",), 'queue=~"$queue",kind="held"'), "{{queue}}"),)),
        Panel("Queues with a condition", ((fact("berth_queue_conditions", ("condition",)), "{{condition}}"),)))),
))

_JOB = 'exported_job="$job"'  # Prometheus renames it: `job` is that of the target
ONE_JOB = Dashboard("berth-job", "Berth / One job", (CLUSTER, JOB), (
    ("Training", (
        Panel("Step", ((fact("berth_job_step", (), _JOB), "step"),), "none",
              description="Of the task that has come least far. Jobs that report steps (docs/users/training.md), the 1,000 oldest."),
        Panel("Steps a minute", ((f"60 * max by (cluster) (deriv(berth_job_step{{{C},{_JOB}}}[5m]))", "steps"),), "none"),
        Panel("Time since the latest checkpoint", ((fact("berth_job_checkpoint_age_seconds", (), _JOB), "age"),), "s"),
        Panel("Nodes that are slow for some job", ((fact("berth_slow_nodes"), "nodes"),)))),
))


def of_gpus(title, metric, unit="short", **more):
    return Panel(title, ((f"{metric}{{{GPUS}}}", "{{Hostname}} {{gpu}}"),), unit, **more)


def errors_of_gpus(title, *metrics):
    return Panel(title, tuple((f"increase({metric}{{{GPUS}}}[1h]) > 0", f"{{{{Hostname}}}} {{{{gpu}}}} {name}")
                              for metric, name in metrics), description="In the last hour.")


NODES = Dashboard("berth-nodes", "Berth / Nodes and devices", (CLUSTER, NODE), (
    ("Nodes", (
        Panel("Nodes", ((f"berth:nodes{{{C}}}", "{{state}}"),)),
        Panel("Nodes that need attention", (
            (fact("berth_nodes_cordoned"), "cordoned"), (fact("berth_nodes_silent"), "silent"),
            (fact("berth_nodes_backing_off"), "backing off"), (fact("berth_nodes_failing"), "failing again and again"))),
        Panel("Nodes that fell silent, and nodes fenced", (
            (f"max by (cluster) (increase(berth_nodes_silenced_total{{{C}}}[1h]))", "fell silent"),
            (f"max by (cluster) (increase(berth_nodes_fenced_total{{{C}}}[1h]))", "fenced"),
            (f'berth:tasks{{{C},state="LOST"}}', "tasks not fenced yet")), description="In the last hour."),
        Panel("Conditions that nodes report", ((fact("berth_node_conditions", ("condition",)), "{{condition}}"),)),
        Panel("Brakes", ((fact("berth_silent_brake"), "silent nodes"), (fact("berth_health_brake_held"), "nodes with problems")),
              description="Not 0: so many nodes are silent or report problems that Berth does not act on it."),
        Panel("HyperNodes with slow links", ((fact("berth_hypernodes_degraded", ("kind", "tier")), "{{kind}} {{tier}}"),)),
        Panel("Refused starts, by fault", ((f"berth:starts_refused:rate10m{{{C}}}", "{{fault}}"),), "ops"))),
    ("Devices", (
        Panel("Unhealthy devices", ((f'berth_agent_device_healthy{{{C},node=~"$node"}} == 0', ""),), kind="table"),
        Panel("Healthy devices", ((f'sum by (node, kind) (berth_agent_device_healthy{{{C},node=~"$node"}})', "{{node}} {{kind}}"),)),
        of_gpus("Utilization", "DCGM_FI_DEV_GPU_UTIL", "percent"),
        of_gpus("Memory used", "1048576 * DCGM_FI_DEV_FB_USED", "bytes"),
        of_gpus("Power", "DCGM_FI_DEV_POWER_USAGE", "watt"),
        of_gpus("Temperature", "DCGM_FI_DEV_GPU_TEMP", "celsius"),
        of_gpus("Clock", "1000000 * DCGM_FI_DEV_SM_CLOCK", "hertz"),
        of_gpus("Reasons for a lower clock", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "none", description="Bits, as NVML has them."))),
    ("Faults of devices", (
        of_gpus("Last XID", "DCGM_FI_DEV_XID_ERRORS", "none"),
        errors_of_gpus("Memory errors", ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "corrected"),
                       ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "uncorrected")),
        errors_of_gpus("Link errors", ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLink CRC"),
                       ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVLink retries"),
                       ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCIe retries")),
        Panel("Memory that was replaced", (
            (f"DCGM_FI_DEV_ROW_REMAP_PENDING{{{GPUS}}}", "{{Hostname}} {{gpu}} needs a reset"),
            (f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{GPUS}}}", "{{Hostname}} {{gpu}} failed"),
            (f"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{{{GPUS}}}", "{{Hostname}} {{gpu}} rows"))))),
))

CONTROL_PLANE = Dashboard("berth-control-plane", "Berth / Control plane", (CLUSTER, INSTANCE), (
    ("Now", (
        Panel("Servers", ((f'up{{job="berthd",{I}}}', "{{instance}}"),), "bool_yes_no", "stat", 8),
        Panel("Accept work", ((of_servers("berth_accepting_work"), "{{instance}}"),), "bool_yes_no", "stat", 8),
        Panel("Version", ((f"berth_build_info{{{I}}}", "{{instance}} {{version}}"),), "none", "stat", 8))),
    ("The loop", (
        latency("A submit, until it is durable", "berth_submit_seconds"),
        latency("A turn: commands, planning, records", "berth_turn_seconds"),
        latency("A planning cycle", "berth_plan_seconds"),
        Panel("Planning cycles a second", ((rate_of_servers("berth_cycles_total"), "{{instance}}"),
                                           (rate_of_servers("berth_cycles_cut_total"), "cut short {{instance}}")), "ops"),
        Panel("Jobs considered a second", ((rate_of_servers("berth_jobs_considered_total"), "{{instance}}"),), "ops"),
        Panel("Commands a second", ((rate_of_servers("berth_commands_total"), "{{instance}}"),
                                    (rate_of_servers("berth_commands_refused_total"), "refused {{instance}}")), "ops"),
        Panel("Queued commands", ((of_servers("berth_commands_pending"), "{{instance}}"),)))),
    ("The store", (
        latency("A write with its sync", "berth_commit_seconds"),
        Panel("Batches that are not durable yet", ((of_servers("berth_commit_backlog"), "{{instance}}"),)),
        Panel("Bytes written a second", ((rate_of_servers("berth_commit_bytes_total"), "{{instance}}"),), "Bps"),
        Panel("Reserve for a full disk", ((of_servers("berth_store_reserve_bytes"), "{{instance}}"),), "bytes"),
        Panel("Damage and full disks", (
            (f"increase(berth_store_read_errors_total{{{I}}}[1h])", "reads that met damage {{instance}}"),
            (f"increase(berth_commit_full_retries_total{{{I}}}[1h])", "writes without room {{instance}}"))),
        Panel("Disk", ((of_servers("berth_disk_free_bytes"), "free {{instance}}"),
                       (of_servers("berth_disk_size_bytes"), "size {{instance}}")), "bytes"),
        Panel("Certificates expire in", ((f'{of_servers("berth_certificate_expiry_time_seconds")} - time()',
                                          "{{file}} {{instance}}"),), "s"),
        Panel("Memory of the process", ((of_servers("berth_resident_memory_bytes"), "{{instance}}"),), "bytes"))),
    ("Agents and readers", (
        latency("From durable to the agents' streams", "berth_dispatch_seconds"),
        Panel("Agents connected", ((of_servers("berth_agent_sessions"), "{{instance}}"),)),
        Panel("Messages of agents a second", (
            (rate_of_servers("berth_agent_heartbeats_total"), "heartbeats {{instance}}"),
            (rate_of_servers("berth_agent_reports_total"), "reports {{instance}}"),
            (rate_of_servers("berth_agent_registrations_total"), "registrations {{instance}}"),
            (rate_of_servers("berth_agent_hellos_refused_total"), "refused {{instance}}")), "ops"),
        Panel("Orders a second", ((f"sum by (instance, order) ({rate_of_servers('berth_dispatches_total')})",
                                   "{{order}} {{instance}}"),), "ops"),
        Panel("Readers", ((of_servers("berth_watchers"), "watches {{instance}}"),
                          (of_servers("berth_log_readers"), "logs {{instance}}"))))),
    ("High availability", (
        Panel("Leads", ((of_servers("berth_ha_leads"), "{{instance}}"),)),
        Panel("Leads or can take over", ((of_servers("berth_ha_eligible"), "{{instance}}"),)),
        Panel("Batches behind", ((fact("berth_ha_member_lag_batches", ("member",)), "{{member}}"),)),
        latency("Confirming that the server still leads", "berth_ha_confirm_seconds"),
        Panel("Since etcd answered", ((of_servers("berth_ha_etcd_silence_seconds"), "{{instance}}"),), "s"),
        Panel("etcd's database", ((fact("berth_ha_etcd_database_bytes", ("endpoint",)), "size {{endpoint}}"),
                                  (fact("berth_ha_etcd_database_used_bytes", ("endpoint",)), "in use {{endpoint}}")), "bytes"),
        Panel("The log in etcd", ((fact("berth_ha_log_bytes"), "bytes"),), "bytes"),
        Panel("Differences from the leader", ((of_servers("berth_ha_differences_total"), "{{instance}}"),)))),
))

ALL = (OVERVIEW, QUEUES, ONE_JOB, NODES, CONTROL_PLANE)
