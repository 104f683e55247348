// Options of sbatch, srun and salloc.
#include <algorithm>
#include <string>
#include <tuple>

#include "clients/slurm/option_tables.h"

namespace berth {
namespace {

// What a job of any of the three asks for.
constexpr SlurmOption kOfJobs[] = {
    {"account", 'A', kValue, kDone, "account; shown, and a label of the job for accounts of use",
     "ACCOUNT"},
    {"begin", 'b', kValue, kDone, "not before this time: now+1hour, 16:00, 2026-12-01T10:00",
     "BEGIN"},
    {"chdir", 'D', kValue, kDone, "working directory; default: the current one"},
    {"clusters", 'M', kValue, kDone, "only the name of this cluster", "CLUSTERS"},
    {"comment", 0, kValue, kDone, "text that scontrol show job prints", "COMMENT"},
    {"constraint", 'C', kValue, kDone,
     "features of the nodes, joined by &; what they mean is in slurm.yaml", "CONSTRAINT"},
    {"cpus-per-gpu", 0, kValue, kDone, "CPUs for each GPU of a task; with --gpus-per-task"},
    {"cpus-per-task", 'c', kValue, kDone, "CPUs of each task; default 1", "CPUS_PER_TASK"},
    {"dependency", 'd', kValue, kDone,
     "afterok, afterany or afternotok, each with :JOB[:JOB...], joined by commas", "DEPENDENCY"},
    {"exclude", 'x', kValue, kDone, "nodes that the job does not get", "EXCLUDE"},
    {"gpus", 'G', kValue, kDone, "[TYPE:]GPUs of the whole job; a multiple of its nodes", "GPUS"},
    {"gpus-per-node", 0, kValue, kDone, "[TYPE:]GPUs on each node", "GPUS_PER_NODE"},
    {"gpus-per-task", 0, kValue, kDone, "[TYPE:]GPUs of each task, which sees only these",
     "GPUS_PER_TASK"},
    {"gres", 0, kValue, kDone,
     "gpu[:TYPE][:N], or counters that nodes declare (NAME:N), on each node", "GRES"},
    {"help", 'h', kFlag, kDone, "print this text"},
    {"hold", 'H', kFlag, kDone, "submit on hold; scontrol release starts it"},
    {"job-name", 'J', kValue, kDone, "name; default: that of the script", "JOB_NAME"},
    {"mem", 0, kValue, kDone, "memory on each node: 4096 (MiB), 16G", "MEM_PER_NODE"},
    {"mem-per-cpu", 0, kValue, kDone, "memory for each CPU", "MEM_PER_CPU"},
    {"mem-per-gpu", 0, kValue, kDone, "memory for each GPU", "MEM_PER_GPU"},
    {"nice", 0, kMaybe, kDone, "lower the priority by this; default 100"},
    {"nodes", 'N', kValue, kDone, "nodes: N or N-N; each task group of a node is one task of Berth",
     "NNODES"},
    {"ntasks", 'n', kValue, kDone,
     "tasks; without --nodes on the fewest nodes that can hold them, each with the same number",
     "NTASKS"},
    {"ntasks-per-node", 0, kValue, kDone, "tasks on each node", "NTASKS_PER_NODE"},
    {"partition", 'p', kValue, kDone, "partition: a queue, by slurm.yaml or by name", "PARTITION"},
    {"priority", 0, kValue, kDone, "priority in the queue; higher goes first"},
    {"qos", 'q', kValue, kDone, "quality of service, by slurm.yaml", "QOS"},
    {"quiet", 'Q', kFlag, kDone, "print only errors"},
    {"time", 't', kValue, kDone, "time limit: 90 (minutes), 1:30:00, 2-12", "TIMELIMIT"},
    {"tmp", 0, kValue, kDone, "local disk on each node, at BERTH_SCRATCH"},
    {"usage", 0, kFlag, kDone, "print this text"},
    {"verbose", 'v', kFlag, kNoMeaning, "there is nothing more to say"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"acctg-freq", 0, kValue, kNoMeaning, "use is always known; see berth usage", "ACCTG_FREQ"},
    {"bb", 0, kValue, kRefused, "copy files in the script, to BERTH_SCRATCH with --tmp"},
    {"bbf", 0, kValue, kRefused, "copy files in the script, to BERTH_SCRATCH with --tmp"},
    {"cluster-constraint", 0, kValue, kRefused, "there is one cluster"},
    {"contiguous", 0, kFlag, kRefused, "write a manifest with topology, for berth submit"},
    {"container", 0, kValue, kRefused, "write a manifest with image, for berth submit"},
    {"container-id", 0, kValue, kRefused, "write a manifest with image, for berth submit"},
    {"core-spec", 'S', kValue, kRefused, "leave it out; agents set CPUs aside"},
    {"cores-per-socket", 0, kValue, kRefused, "use --constraint"},
    {"cpu-freq", 0, kValue, kRefused, "leave it out; nodes keep their frequencies"},
    {"deadline", 0, kValue, kRefused, "leave it out, or cancel the job with at(1) and scancel"},
    {"delay-boot", 0, kValue, kNoMeaning, "Berth boots no nodes"},
    {"distribution", 'm', kValue, kRefused, "leave it out; tasks are in blocks"},
    {"exclusive", 0, kMaybe, kRefused,
     "ask for all CPUs of a node: --nodes and --cpus-per-task, or --mem"},
    {"extra", 0, kValue, kRefused, "use --comment"},
    {"extra-node-info", 'B', kValue, kRefused, "use --constraint"},
    {"gid", 0, kValue, kRefused, "leave it out; jobs have the groups of their user"},
    {"gpu-bind", 0, kValue, kRefused, "use --gpus-per-task, which gives each task its own"},
    {"gpu-freq", 0, kValue, kRefused, "leave it out; GPUs keep their frequencies"},
    {"gpus-per-socket", 0, kValue, kRefused, "use --gpus-per-node"},
    {"gres-flags", 0, kValue, kNoMeaning, "CPUs near the GPUs are chosen anyway"},
    {"hint", 0, kValue, kRefused, "leave it out; CPUs are counted as the nodes report them"},
    {"licenses", 'L', kValue, kRefused, "leave it out; there are no licenses"},
    {"mail-type", 0, kValue, kNoMeaning, "Berth sends no mail"},
    {"mail-user", 0, kValue, kNoMeaning, "Berth sends no mail"},
    {"mcs-label", 0, kValue, kRefused, "leave it out"},
    {"mem-bind", 0, kValue, kRefused, "leave it out; memory is near the task's CPUs"},
    {"mincpus", 0, kValue, kRefused, "use --cpus-per-task and --ntasks-per-node"},
    {"network", 0, kValue, kRefused, "leave it out"},
    {"no-kill", 'k', kMaybe, kRefused, "leave it out; a job that loses a node starts again"},
    {"nodefile", 'F', kValue, kRefused, "use --exclude or --constraint"},
    {"nodelist", 'w', kValue, kRefused, "use --exclude, or --constraint with a label of the nodes"},
    {"ntasks-per-core", 0, kValue, kRefused, "use --cpus-per-task"},
    {"ntasks-per-gpu", 0, kValue, kRefused, "use --ntasks-per-node and --gpus-per-task"},
    {"ntasks-per-socket", 0, kValue, kRefused, "use --ntasks-per-node"},
    {"overcommit", 'O', kFlag, kRefused, "ask for fewer CPUs: --cpus-per-task"},
    {"oversubscribe", 's', kFlag, kRefused, "leave it out; CPUs belong to one job"},
    {"power", 0, kValue, kNoMeaning, "Berth caps no power"},
    {"prefer", 0, kValue, kRefused, "use --constraint"},
    {"profile", 0, kValue, kRefused, "leave it out; see berth usage"},
    {"reboot", 0, kFlag, kRefused, "leave it out; Berth boots no nodes"},
    {"reservation", 0, kValue, kRefused, "use a queue with a guarantee: --partition"},
    {"resv-ports", 0, kMaybe, kRefused, "leave it out; MASTER_PORT is reserved"},
    {"segment", 0, kValue, kRefused, "write a manifest with partition, for berth submit"},
    {"sockets-per-node", 0, kValue, kRefused, "use --constraint"},
    {"spread-job", 0, kFlag, kRefused, "use --nodes"},
    {"stepmgr", 0, kFlag, kNoMeaning, "steps never ask the server"},
    {"switches", 0, kValue, kRefused, "write a manifest with topology, for berth submit"},
    {"thread-spec", 0, kValue, kRefused, "leave it out; agents set CPUs aside"},
    {"threads-per-core", 0, kValue, kRefused, "use --constraint"},
    {"tres-bind", 0, kValue, kRefused, "use --gpus-per-task"},
    {"tres-per-task", 0, kValue, kRefused, "use --cpus-per-task and --gpus-per-task"},
    {"uid", 0, kValue, kRefused, "use berth submit --on-behalf-of"},
    {"use-min-nodes", 0, kFlag, kNoMeaning, "a range of nodes means its least number"},
    {"wckey", 0, kValue, kNoMeaning, "accounts of use are by queue, user and label", "WCKEY"},
};

constexpr SlurmOption kOfSbatch[] = {
    {"array", 'a', kValue, kDone, "indexes: 0-99, 1,3,5-7, 0-100:10, each with %N at once",
     "ARRAY_INX"},
    {"error", 'e', kValue, kDone,
     "file for standard error, with %j %A %a %x %u %N; default: --output", "ERROR"},
    {"export", 0, kValue, kDone, "ALL, NONE, or NAME[=VALUE] joined by commas; default ALL",
     "EXPORT"},
    {"input", 'i', kValue, kDone, "file for standard input", "INPUT"},
    {"kill-on-invalid-dep", 0, kValue, kDone,
     "yes: a dependency that can no longer be met ends the job; no is refused"},
    {"no-requeue", 0, kFlag, kDone, "never start again after the loss of a node or an eviction",
     "NO_REQUEUE"},
    {"open-mode", 0, kValue, kDone, "append or truncate; default truncate", "OPEN_MODE"},
    {"output", 'o', kValue, kDone, "file for output, as --error; default slurm-%j.out", "OUTPUT"},
    {"parsable", 0, kFlag, kDone, "print the number only"},
    {"requeue", 0, kFlag, kDone, "start again after the loss of a node or an eviction; the default",
     "REQUEUE"},
    {"signal", 0, kValue, kDone,
     "[B:]SIGNAL[@SECONDS] before the time limit: to the steps, or with B: to the script",
     "SIGNAL"},
    {"test-only", 0, kFlag, kDone, "submit nothing; print whether and where it would start"},
    {"wait", 'W', kFlag, kDone, "until the job has ended; the exit code is the job's", "WAIT"},
    {"wrap", 0, kValue, kDone, "a command for sh instead of a script"},
    {"batch", 0, kValue, kRefused, "use --constraint"},
    {"export-file", 0, kValue, kRefused, "use --export"},
    {"get-user-env", 0, kMaybe, kRefused, "use --export, or bash -l in the script"},
    {"ignore-pbs", 0, kFlag, kNoMeaning, "lines with #PBS are never read"},
    {"propagate", 0, kMaybe, kRefused, "set limits in the script, with ulimit"},
    {"wait-all-nodes", 0, kValue, kNoMeaning, "a job starts once all its nodes are ready"},
};

constexpr SlurmOption kOfSrun[] = {
    {
        "error",
        'e',
        kValue,
        kDone,
        "file for standard error, also with %t and %n",
    },
    {"export", 0, kValue, kDone, "ALL, NONE, or NAME[=VALUE] joined by commas; default ALL"},
    {"input", 'i', kValue, kDone, "file for standard input, \"none\", or the rank that reads it"},
    {"jobid", 0, kValue, kDone, "the job whose allocation to use; default: SLURM_JOB_ID"},
    {"kill-on-bad-exit", 'K', kMaybe, kDone, "end the step when a task fails; 0: do not"},
    {"label", 'l', kFlag, kDone, "put the task's number before each line"},
    {"mpi", 0, kValue, kDone,
     "only none; others, such as pmix, are refused: write mpirun COMMAND instead of srun COMMAND"},
    {"nodelist", 'w', kValue, kDone, "in a job: the nodes of the job on which the step runs"},
    {"open-mode", 0, kValue, kDone, "append or truncate; default truncate"},
    {"output", 'o', kValue, kDone, "file for output, also with %t and %n"},
    {"overlap", 0, kFlag, kDone, "do not wait for CPUs that other steps hold"},
    {"unbuffered", 'u', kFlag, kDone, "output is never held back: always so"},
    {"wait", 'W', kValue, kDone, "seconds after the first task's end until the others are killed"},
    {"exact", 0, kFlag, kDone, "hold only the CPUs of the step's tasks: always so"},
    {"het-group", 0, kValue, kRefused, "there are no heterogeneous jobs"},
    {"bcast", 0, kMaybe, kRefused, "use a shared folder"},
    {"cpu-bind", 0, kValue, kNoMeaning, "tasks run on all CPUs of the job's part of a node"},
    {"multi-prog", 0, kFlag, kRefused, "choose by SLURM_PROCID in a script"},
    {"no-allocate", 'Z', kFlag, kRefused, "leave it out"},
    {"preserve-env", 'E', kFlag, kRefused, "leave it out"},
    {"prolog", 0, kValue, kRefused, "write a script that calls it"},
    {"epilog", 0, kValue, kRefused, "write a script that calls it"},
    {"propagate", 0, kMaybe, kRefused, "set limits in the script, with ulimit"},
    {"pty", 0, kMaybe, kRefused, "use berth run -it, or berth exec -it in a running job"},
    {"relative", 'r', kValue, kRefused, "leave it out; free nodes of the job are taken"},
    {"task-prolog", 0, kValue, kRefused, "write a script that calls it"},
    {"task-epilog", 0, kValue, kRefused, "write a script that calls it"},
    {"threads", 'T', kValue, kNoMeaning, "srun has no pool of threads"},
};

constexpr SlurmOption kOfSalloc[] = {
    {"immediate", 'I', kMaybe, kRefused, "leave it out, or use sbatch --test-only"},
    {"no-bell", 0, kFlag, kNoMeaning, "there is no bell"},
    {"bell", 0, kFlag, kRefused, "leave it out"},
    {"no-shell", 0, kFlag, kRefused, "use sbatch --wrap \"sleep infinity\""},
    {"kill-command", 'K', kMaybe, kRefused, "leave it out; the command ends by itself"},
};

std::vector<SlurmOption> WithJobOptions(std::span<const SlurmOption> own) {
  std::vector<SlurmOption> all(own.begin(), own.end());
  for (const SlurmOption& option : kOfJobs) {
    if (std::none_of(all.begin(), all.end(), [&](const SlurmOption& other) {
          return std::string(other.name) == option.name;
        })) {
      all.push_back(option);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const SlurmOption& a, const SlurmOption& b) {
    return std::tuple(a.fate, std::string(a.name)) < std::tuple(b.fate, std::string(b.name));
  });
  return all;
}

}  // namespace

const SlurmCommand& SbatchCommand() {
  static const std::vector<SlurmOption> kOptions = WithJobOptions(kOfSbatch);
  static const SlurmCommand kCommand = {
      "sbatch", "submit a batch script", "[SCRIPT [ARGUMENT...]]", kOptions, true, "SBATCH_"};
  return kCommand;
}

const SlurmCommand& SrunCommand() {
  static const std::vector<SlurmOption> kOptions = WithJobOptions(kOfSrun);
  static const SlurmCommand kCommand = {"srun", "run a command on the nodes of a job, or as a job",
                                        "COMMAND [ARGUMENT...]", kOptions, true};
  return kCommand;
}

const SlurmCommand& SallocCommand() {
  static const std::vector<SlurmOption> kOptions = WithJobOptions(kOfSalloc);
  static const SlurmCommand kCommand = {"salloc",
                                        "hold places while a command or a shell runs here",
                                        "[COMMAND [ARGUMENT...]]", kOptions, true};
  return kCommand;
}

}  // namespace berth
