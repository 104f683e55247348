#include "clients/cli/migrate/slurm_parameters.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "absl/strings/match.h"

namespace berth {
namespace {

struct Instead {
  absl::string_view key;  // or its beginning, with "*" at the end
  absl::string_view text;
};

constexpr absl::string_view kUnknown = "has no counterpart";
constexpr absl::string_view kOwnPrograms =
    "is about Slurm's own programs; see berthd.yaml and agent.yaml "
    "(docs/reference/configuration.md)";

constexpr Instead kParameters[] = {
    {"accountingstorageenforce",
     "limits of queues always count; who may submit is said by roles (berth access)"},
    {"accountingstorage*", "history is in Berth's own log: berth job history, sacct"},
    {"authtype", "certificates: docs/operators/security.md"},
    {"credtype", "certificates: docs/operators/security.md"},
    {"defmempercpu", "queues have defaults.memory for each task, not for each CPU"},
    {"defmempergpu", "queues have defaults.memory for each task, not for each GPU"},
    {"enforcepartlimits", "a limit of a partition in slurm.yaml always counts"},
    {"epilog*", "hooks.epilog in agent.yaml"},
    {"gres*", "agents find devices; what else they count is extended in agent.yaml"},
    {"healthcheck*", "health.command in agent.yaml"},
    {"jobcomp*", "history is in Berth's own log: berth job history, sacct"},
    {"jobrequeue", "jobs start again unless they say --no-requeue"},
    {"killwait", "jobs have killGrace; that of the Slurm commands is 30 seconds"},
    {"launchparameters", "tasks are started by the agent; there is nothing to set"},
    {"licenses", "there are no licenses for the whole cluster"},
    {"maxarraysize", "limits.arraySize in berthd.yaml"},
    {"maxjobcount", "limits.activeJobs in berthd.yaml"},
    {"maxmempercpu", "limits of memory belong to queues"},
    {"maxmempernode", "limits of memory belong to queues"},
    {"mpidefault", "mpirun finds the job's nodes by itself; srun has no PMI"},
    {"preempt*",
     "queues reclaim what they lent, and priority classes evict: docs/operators/queues.md"},
    {"prioritydecayhalflife", "scheduling.fairShare.halfLife in berthd.yaml, for user fairness"},
    {"priorityflags", "priorities are numbers that jobs have; there is no sum of weights"},
    {"priority*", "shares of queues, then priorities of jobs; there is no sum of weights"},
    {"proctracktype", "agents use control groups"},
    {"prolog*", "hooks.prolog in agent.yaml"},
    {"requeue*", "policies of jobs say what happens after an exit code"},
    {"reservation*", "there are no reservations by name; see berth cluster pause and node drain"},
    {"resume*", "nodes are not powered up and down"},
    {"returntoservice", "a node that registers again is ready again"},
    {"schedulerparameters", "scheduling in berthd.yaml"},
    {"schedulertype", "the planner backfills with reservations; there is no other one"},
    {"selecttype*", "placement is by strategy and deviceStrategy of queues and jobs"},
    {"slurmctldhost", "name berthd in server of slurm.yaml"},
    {"controlmachine", "name berthd in server of slurm.yaml"},
    {"slurmctld*", kOwnPrograms},
    {"slurmd*", kOwnPrograms},
    {"slurmsched*", kOwnPrograms},
    {"slurmuser", kOwnPrograms},
    {"statesavelocation", kOwnPrograms},
    {"switchtype", kOwnPrograms},
    {"suspend*", "nodes are not powered up and down"},
    {"taskplugin*", "agents use control groups"},
    {"taskepilog", "hooks.epilog in agent.yaml, or a line of the script"},
    {"taskprolog", "hooks.prolog in agent.yaml, or a line of the script"},
    {"topologyplugin", "HyperNodes, from topology.conf with --topology"},
    {"topologyparam", "HyperNodes, from topology.conf with --topology"},
    {"track*", "there are no workload keys; use --account"},
    {"vsizefactor", "tasks have limits of memory by control groups"},
    {"usepam", "berth exec enters a job; ssh is not watched"},
};

constexpr Instead kPartitionKeys[] = {
    {"allow*", "who may submit is said by roles of queues (berth access grant submitter)"},
    {"alternate", "give jobs another partition"},
    {"deny*", "who may submit is said by roles of queues (berth access grant submitter)"},
    {"cpubind", "tasks get whole CPUs by control groups"},
    {"defmempercpu", "queues have defaults.memory for each task, not for each CPU"},
    {"defmempergpu", "queues have defaults.memory for each task, not for each GPU"},
    {"disablerootjobs", "who may submit is said by roles of queues"},
    {"exclusive*", "jobs say --exclusive"},
    {"gracetime", "jobs have killGrace"},
    {"hidden", "who sees what is said by roles (berth access)"},
    {"lln", "queues have strategy: Spread"},
    {"maxcpuspernode", "queues have limits for all of their jobs, not for each node"},
    {"maxmem*", "queues have limits for all of their jobs, not for each node"},
    {"maxnodes", "a job has no limit of nodes; queues have limits for all of their jobs"},
    {"minnodes", "a job has no least number of nodes"},
    {"oversubscribe", "places are never shared, and --exclusive is per job"},
    {"shared", "places are never shared, and --exclusive is per job"},
    {"overtimelimit", "a job ends at its walltime, after killGrace"},
    {"preemptmode", "queues reclaim what they lent, and priority classes evict"},
    {"priority*", "queues have priority and weight"},
    {"qos", "limits of a QOS belong to its queue"},
    {"reqresv", "there are no reservations by name"},
    {"rootonly", "who may submit is said by roles of queues"},
    {"selecttypeparameters", "placement is by strategy of queues and jobs"},
    {"state", "close the queue (berth queue close), or leave the partition out of slurm.yaml"},
    {"tresbillingweights", "shares count the dominant resource; there are no weights"},
};

constexpr Instead kNodeKeys[] = {
    {"weight", "placement is by strategy; there is no weight of a node"},
    {"state", "drain or cordon the node (berth node drain)"},
    {"reason", "berth node drain --reason"},
    {"corespec*", "cpu in agent.yaml: what tasks may have"},
    {"cpuspec*", "cpu in agent.yaml: what tasks may have"},
    {"memspec*", "memory in agent.yaml: what tasks may have"},
    {"tmpdisk", "scratch in agent.yaml"},
    {"topology", "HyperNodes, from topology.conf with --topology"},
};

constexpr Instead kLimits[] = {
    {"fairshare", "a share of the parent: the account becomes a queue of weight 1"},
    {"share", "a share of the parent: the account becomes a queue of weight 1"},
    {"grptres", "this resource is not counted by queues"},
    {"grptresmins", "queues limit what is held, not what was used over time"},
    {"grptresrunmin*", "queues limit what is held, not what was used over time"},
    {"grpcpumins", "queues limit what is held, not what was used over time"},
    {"grpwall", "queues limit what is held, not time"},
    {"maxwall*", "partitions in slurm.yaml have maxTime"},
    {"max*", "queues limit all of their jobs, not each job or user"},
    {"mintres*", "a job has no least size"},
    {"minprio*", "there is no least priority"},
    {"grp*", "queues limit resources, maxRunningJobs and maxJobs"},
    {"qos", "who may use a QOS is not limited: it is a priority class in slurm.yaml"},
    {"qoslevel", "who may use a QOS is not limited: it is a priority class in slurm.yaml"},
    {"defaultqos", "jobs say --qos; a priority class may be the global default"},
    {"defqos", "jobs say --qos; a priority class may be the global default"},
    {"priority", "queues have priority among their siblings; jobs have their own"},
    {"partition", "an account is a queue for all partitions"},
    {"description", "queues have labels"},
    {"organization", "queues have labels"},
    {"wckeys", "there are no workload keys"},
    {"defaultwckey", "there are no workload keys"},
};

constexpr Instead kQosKeys[] = {
    {"grp*", "a QOS has no limits; give it a queue with limits, in qos of slurm.yaml"},
    {"max*", "a QOS has no limits; give it a queue with limits, in qos of slurm.yaml"},
    {"mintres*", "a job has no least size"},
    {"minprio*", "there is no least priority"},
    {"gracetime", "jobs have killGrace"},
    {"preempt", "classes of a higher value evict those of a lower one"},
    {"preemptmode", "a job that is evicted is requeued"},
    {"preemptexempttime", "scheduling.eviction.minRuntime in berthd.yaml, for all jobs"},
    {"flags", "there are no flags of a QOS"},
    {"usage*", "shares count what is held, not a factor of it"},
    {"limitfactor", "shares count what is held, not a factor of it"},
};

absl::string_view Find(std::span<const Instead> table, absl::string_view key) {
  const auto matches = [&](const Instead& row) {
    const bool beginning = absl::EndsWith(row.key, "*");
    return beginning ? absl::StartsWith(key, row.key.substr(0, row.key.size() - 1))
                     : key == row.key;
  };
  const auto found = std::find_if(table.begin(), table.end(), matches);
  return found == table.end() ? kUnknown : found->text;
}

}  // namespace

absl::string_view InsteadOfParameter(absl::string_view key) { return Find(kParameters, key); }
absl::string_view InsteadOfPartitionKey(absl::string_view key) { return Find(kPartitionKeys, key); }
absl::string_view InsteadOfNodeKey(absl::string_view key) { return Find(kNodeKeys, key); }
absl::string_view InsteadOfLimit(absl::string_view key) { return Find(kLimits, key); }
absl::string_view InsteadOfQosKey(absl::string_view key) { return Find(kQosKeys, key); }

bool IsDiscovered(absl::string_view key) {
  static constexpr absl::string_view kKeys[] = {
      "arch",       "boards",       "corespersocket",  "cpus",           "gres",
      "nodeaddr",   "nodehostname", "bcastaddr",       "port",           "procs",
      "realmemory", "sockets",      "socketsperboard", "threadspercore", "sharespernode"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

}  // namespace berth
