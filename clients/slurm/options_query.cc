// Options of the commands that show and change jobs.
#include "clients/slurm/option_tables.h"

namespace berth {
namespace {

constexpr SlurmOption kOfSqueue[] = {
    {"all", 'a', kFlag, kNoMeaning, "all partitions are always shown"},
    {"account", 'A', kValue, kDone, "jobs of these accounts"},
    {"array", 'r', kFlag, kDone, "a line for each index of an array that waits"},
    {"clusters", 'M', kValue, kDone, "only the name of this cluster"},
    {"format", 'o', kValue, kDone, "fields: %i %j %t ..., with widths: %.18i"},
    {"Format", 'O', kValue, kDone, "fields by name: JobID,Name:30,State"},
    {"help", 0, kFlag, kDone, "print this text"},
    {"hide", 0, kFlag, kNoMeaning, "no partition is hidden"},
    {"iterate", 'i', kValue, kDone, "again every so many seconds"},
    {"jobs", 'j', kMaybe, kDone, "these jobs: 123,124_5"},
    {"json", 0, kMaybe, kDone, "as JSON: those of Slurm's fields that Berth knows"},
    {"long", 'l', kFlag, kDone, "with times and limits"},
    {"me", 0, kFlag, kDone, "your jobs"},
    {"name", 'n', kValue, kDone, "jobs with these names"},
    {"noconvert", 0, kFlag, kDone, "memory in MiB, not in larger units"},
    {"nodelist", 'w', kValue, kDone, "jobs on these nodes"},
    {"noheader", 'h', kFlag, kDone, "no line with names of the columns"},
    {"only-job-state", 0, kFlag, kDone, "as without: the state is always shown"},
    {"partition", 'p', kValue, kDone, "jobs of these partitions"},
    {"priority", 'P', kFlag, kNoMeaning, "a job has one partition"},
    {"qos", 'q', kValue, kDone, "jobs with these qualities of service"},
    {"sort", 'S', kValue, kDone, "by fields, as in --format: i,-t; default: by number"},
    {"start", 0, kFlag, kDone, "when jobs that wait would start, by Berth's estimate"},
    {"states", 't', kValue, kDone, "jobs in these states, or all; default: not ended"},
    {"usage", 0, kFlag, kDone, "print this text"},
    {"user", 'u', kValue, kDone, "jobs of these users"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"federation", 0, kFlag, kRefused, "there is one cluster"},
    {"licenses", 'L', kValue, kRefused, "there are no licenses"},
    {"local", 0, kFlag, kNoMeaning, "there is one cluster"},
    {"reservation", 'R', kValue, kRefused, "there are no reservations; see --partition"},
    {"sibling", 0, kFlag, kRefused, "there is one cluster"},
    {"steps", 's', kMaybe, kRefused, "steps are processes of the job: see berth job describe"},
    {"verbose", 'v', kFlag, kNoMeaning, "there is nothing more to say"},
    {"yaml", 0, kMaybe, kRefused, "use --json"},
};

constexpr SlurmOption kOfSacct[] = {
    {"accounts", 'A', kValue, kDone, "jobs of these accounts"},
    {"allocations", 'X', kFlag, kDone, "one line for a job: always so, as steps are not kept"},
    {"allusers", 'a', kFlag, kDone, "jobs of all users"},
    {"array", 0, kFlag, kDone, "a line for each index of an array that waits"},
    {"brief", 'b', kFlag, kDone, "number, state and exit code"},
    {"clusters", 'M', kValue, kDone, "all, or the name of this cluster"},
    {"delimiter", 0, kValue, kDone, "between columns, with -p and -P; default |"},
    {"duplicates", 'D', kFlag, kNoMeaning, "a job has one record"},
    {"endtime", 'E', kValue, kDone, "jobs that were there before this time"},
    {"format", 'o', kValue, kDone, "columns: JobID,State%20,ExitCode"},
    {"helpformat", 'e', kFlag, kDone, "print the names of all columns"},
    {"help", 'h', kFlag, kDone, "print this text"},
    {"jobs", 'j', kValue, kDone, "these jobs: 123,124_5"},
    {"json", 0, kMaybe, kDone, "as JSON: those of Slurm's fields that Berth knows"},
    {"local", 'L', kFlag, kDone, "this cluster: always so"},
    {"long", 'l', kFlag, kDone, "many columns"},
    {"name", 0, kValue, kDone, "jobs with these names"},
    {"noconvert", 0, kFlag, kDone, "memory in MiB, not in larger units"},
    {"nodelist", 'N', kValue, kDone, "jobs that were on these nodes"},
    {"noheader", 'n', kFlag, kDone, "no line with names of the columns"},
    {"parsable", 'p', kFlag, kDone, "columns with | between and at the end"},
    {"parsable2", 'P', kFlag, kDone, "columns with | between"},
    {"partition", 'r', kValue, kDone, "jobs of these partitions"},
    {"qos", 'q', kValue, kDone, "jobs with these qualities of service"},
    {"starttime", 'S', kValue, kDone, "jobs that were there after this time; default: midnight"},
    {"state", 's', kValue, kDone, "jobs in these states"},
    {"truncate", 'T', kFlag, kRefused, "compute it from Start and End"},
    {"units", 0, kValue, kRefused, "use --noconvert"},
    {"usage", 0, kFlag, kDone, "print this text"},
    {"user", 'u', kValue, kDone, "jobs of these users; default: yours"},
    {"uid", 0, kValue, kDone, "jobs of these users"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"verbose", 'v', kFlag, kNoMeaning, "there is nothing more to say"},
    {"batch-script", 'B', kFlag, kDone, "print the script of the jobs"},
    {"env-vars", 0, kFlag, kRefused, "use berth job get JOB -o yaml"},
    {"completion", 'c', kFlag, kRefused, "leave it out"},
    {"constraints", 'C', kValue, kRefused, "leave it out"},
    {"federation", 0, kFlag, kRefused, "there is one cluster"},
    {"file", 'f', kValue, kRefused, "the server has the records"},
    {"flags", 'F', kValue, kRefused, "leave it out"},
    {"gid", 'g', kValue, kRefused, "use --user"},
    {"group", 0, kValue, kRefused, "use --user"},
    {"ncpus", 'i', kValue, kRefused, "select by AllocCPUS in the output"},
    {"nnodes", 'I', kValue, kRefused, "select by NNodes in the output"},
    {"reason", 'R', kValue, kRefused, "select by Reason in the output"},
    {"timelimit-max", 'K', kValue, kRefused, "select by Timelimit in the output"},
    {"timelimit-min", 'k', kValue, kRefused, "select by Timelimit in the output"},
    {"wckeys", 'W', kValue, kRefused, "use --accounts"},
    {"associations", 'x', kValue, kRefused, "use --accounts and --user"},
    {"use-local-uid", 0, kFlag, kNoMeaning, "users are known by name"},
    {"whole-hetjob", 0, kMaybe, kNoMeaning, "there are no heterogeneous jobs"},
    {"yaml", 0, kMaybe, kRefused, "use --json"},
    {"expand-patterns", 0, kFlag, kRefused, "use scontrol show job"},
};

constexpr SlurmOption kOfSinfo[] = {
    {"all", 'a', kFlag, kNoMeaning, "all partitions are always shown"},
    {"clusters", 'M', kValue, kDone, "only the name of this cluster"},
    {"exact", 'e', kFlag, kDone, "group only nodes of equal size"},
    {"format", 'o', kValue, kDone, "fields: %P %a %l %D %t %N ..., with widths"},
    {"Format", 'O', kValue, kDone, "fields by name: NodeList,StateLong:20"},
    {"help", 0, kFlag, kDone, "print this text"},
    {"hide", 0, kFlag, kNoMeaning, "no partition is hidden"},
    {"iterate", 'i', kValue, kDone, "again every so many seconds"},
    {"json", 0, kMaybe, kDone, "as JSON: those of Slurm's fields that Berth knows"},
    {"list-reasons", 'R', kFlag, kDone, "nodes that take no jobs, and why"},
    {"long", 'l', kFlag, kDone, "more columns"},
    {"noconvert", 0, kFlag, kDone, "memory in MiB, not in larger units"},
    {"Node", 'N', kFlag, kDone, "a line for each node and partition"},
    {"nodes", 'n', kValue, kDone, "only these nodes"},
    {"noheader", 'h', kFlag, kDone, "no line with names of the columns"},
    {"partition", 'p', kValue, kDone, "only these partitions"},
    {"responding", 'r', kFlag, kDone, "only nodes that respond"},
    {"dead", 'd', kFlag, kDone, "only nodes that do not respond"},
    {"states", 't', kValue, kDone, "only nodes in these states"},
    {"summarize", 's', kFlag, kDone, "nodes of a partition as allocated/idle/other/total"},
    {"usage", 0, kFlag, kDone, "print this text"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"verbose", 'v', kFlag, kNoMeaning, "there is nothing more to say"},
    {"federation", 'F', kFlag, kRefused, "there is one cluster"},
    {"future", 0, kFlag, kRefused, "there are no nodes of the future"},
    {"local", 0, kFlag, kNoMeaning, "there is one cluster"},
    {"reservation", 'T', kFlag, kRefused, "there are no reservations"},
    {"sort", 'S', kValue, kRefused, "use sort(1)"},
    {"yaml", 0, kMaybe, kRefused, "use --json"},
};

constexpr SlurmOption kOfScancel[] = {
    {"account", 'A', kValue, kDone, "only jobs of this account"},
    {"batch", 'b', kFlag, kDone, "signal the batch script only"},
    {"clusters", 'M', kValue, kDone, "only the name of this cluster"},
    {"full", 'f', kFlag, kDone, "signal the batch script and the steps"},
    {"help", 0, kFlag, kDone, "print this text"},
    {"interactive", 'i', kFlag, kRefused, "look first, with squeue"},
    {"jobname", 'n', kValue, kDone, "only jobs with this name"},
    {"name", 0, kValue, kDone, "as --jobname"},
    {"me", 0, kFlag, kDone, "only your jobs"},
    {"nodelist", 'w', kValue, kDone, "only jobs on these nodes"},
    {"partition", 'p', kValue, kDone, "only jobs of this partition"},
    {"qos", 'q', kValue, kDone, "only jobs with this quality of service"},
    {"quiet", 'Q', kFlag, kDone, "a job that has ended is no error"},
    {"signal", 's', kValue, kDone,
     "send this signal instead of ending the job; KILL ends it at once"},
    {"state", 't', kValue, kDone, "only jobs in this state: PENDING, RUNNING or SUSPENDED"},
    {"usage", 0, kFlag, kDone, "print this text"},
    {"user", 'u', kValue, kDone, "only jobs of this user"},
    {"verbose", 'v', kFlag, kNoMeaning, "there is nothing more to say"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"admin-comment", 0, kValue, kRefused, "use berth job cancel --reason"},
    {"ctld", 0, kFlag, kNoMeaning, "the server always does it"},
    {"cron", 'c', kFlag, kRefused, "use berth job cancel with the schedule's name"},
    {"hurry", 'H', kFlag, kNoMeaning, "nothing is copied at the end"},
    {"reservation", 'R', kValue, kRefused, "there are no reservations"},
    {"sibling", 0, kValue, kRefused, "there is one cluster"},
    {"wckey", 0, kValue, kRefused, "use --account"},
};

constexpr SlurmOption kOfScontrol[] = {
    {"all", 'a', kFlag, kNoMeaning, "all partitions are always shown"},
    {"cluster", 'M', kValue, kDone, "only the name of this cluster"},
    {"details", 'd', kFlag, kDone, "all that is known: always so"},
    {"help", 'h', kFlag, kDone, "print this text"},
    {"hide", 0, kFlag, kNoMeaning, "no partition is hidden"},
    {"json", 0, kMaybe, kDone, "of show: as JSON: those of Slurm's fields that Berth knows"},
    {"oneliner", 'o', kFlag, kDone, "of show: one line for each"},
    {"quiet", 'Q', kFlag, kDone, "a job that has ended is no error"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"verbose", 'v', kFlag, kNoMeaning, "there is nothing more to say"},
    {"federation", 'F', kFlag, kRefused, "there is one cluster"},
    {"future", 0, kFlag, kRefused, "there are no nodes of the future"},
    {"local", 0, kFlag, kNoMeaning, "there is one cluster"},
    {"sibling", 0, kFlag, kRefused, "there is one cluster"},
    {"uid", 'u', kValue, kRefused, "leave it out"},
    {"yaml", 0, kMaybe, kRefused, "use --json"},
};

constexpr SlurmOption kOfSshare[] = {
    {"accounts", 'A', kValue, kDone, "only these queues"},
    {"all", 'a', kFlag, kNoMeaning, "users have no shares"},
    {"clusters", 'M', kValue, kDone, "only the name of this cluster"},
    {"format", 'o', kValue, kDone, "columns: Account%20,EffectvUsage; an account is a queue"},
    {"help", 0, kFlag, kDone, "print this text"},
    {"noheader", 'n', kFlag, kDone, "no line with names of the columns"},
    {"parsable", 'p', kFlag, kDone, "columns with | between and at the end"},
    {"parsable2", 'P', kFlag, kDone, "columns with | between"},
    {"usage", 0, kFlag, kDone, "print this text"},
    {"Users", 'U', kFlag, kDone, "only shares of users: there are none"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"long", 'l', kFlag, kRefused, "use --format"},
    {"partition", 'm', kFlag, kRefused, "a queue is a partition"},
    {"users", 'u', kValue, kRefused, "users have no shares; use --accounts"},
    {"verbose", 'v', kFlag, kNoMeaning, "there is nothing more to say"},
};

constexpr SlurmOption kOfSprio[] = {
    {"clusters", 'M', kValue, kDone, "only the name of this cluster"},
    {"help", 0, kFlag, kDone, "print this text"},
    {"jobs", 'j', kValue, kDone, "these jobs"},
    {"noheader", 'h', kFlag, kDone, "no line with names of the columns"},
    {"partition", 'p', kValue, kDone, "jobs of these partitions"},
    {"usage", 0, kFlag, kDone, "print this text"},
    {"user", 'u', kValue, kDone, "jobs of these users"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"format", 'o', kValue, kRefused, "a priority has no parts; use squeue -o"},
    {"long", 'l', kFlag, kRefused, "a priority has no parts; use berth job explain"},
    {"norm", 'n', kFlag, kRefused, "a priority has no parts; use berth job explain"},
    {"sort", 'S', kValue, kRefused, "use squeue -S"},
    {"verbose", 'v', kFlag, kNoMeaning, "there is nothing more to say"},
    {"weights", 'w', kFlag, kRefused, "there are no weights; use berth job explain"},
};

constexpr SlurmOption kOfSacctmgr[] = {
    {"help", 'h', kFlag, kDone, "print this text"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"associations", 's', kFlag, kRefused, "there are none; see berth queue"},
    {"immediate", 'i', kFlag, kRefused, "there is nothing to change; see berth queue"},
    {"noheader", 'n', kFlag, kNoMeaning, "there is nothing to list"},
    {"parsable", 'p', kFlag, kNoMeaning, "there is nothing to list"},
    {"parsable2", 'P', kFlag, kNoMeaning, "there is nothing to list"},
};

constexpr SlurmOption kOfSstat[] = {
    {"help", 'h', kFlag, kDone, "print this text"},
    {"version", 'V', kFlag, kDone, "print the version"},
    {"jobs", 'j', kValue, kRefused, "look with srun --overlap --jobid"},
    {"format", 'o', kValue, kRefused, "look with srun --overlap --jobid"},
};

}  // namespace

const SlurmCommand& SshareCommand() {
  static constexpr SlurmCommand kCommand = {"sshare", "show the shares of queues", "", kOfSshare};
  return kCommand;
}

const SlurmCommand& SprioCommand() {
  static constexpr SlurmCommand kCommand = {"sprio", "show the priorities of jobs that wait", "",
                                            kOfSprio};
  return kCommand;
}

const SlurmCommand& SacctmgrCommand() {
  static constexpr SlurmCommand kCommand = {"sacctmgr", "refuse: there are no associations",
                                            "COMMAND...", kOfSacctmgr, true};
  return kCommand;
}

const SlurmCommand& SstatCommand() {
  static constexpr SlurmCommand kCommand = {"sstat", "refuse: the use of steps is not kept", "",
                                            kOfSstat};
  return kCommand;
}

const SlurmCommand& SqueueCommand() {
  static constexpr SlurmCommand kCommand = {"squeue", "show jobs that wait and run", "", kOfSqueue};
  return kCommand;
}

const SlurmCommand& SacctCommand() {
  static constexpr SlurmCommand kCommand = {"sacct", "show jobs, also those that have ended", "",
                                            kOfSacct};
  return kCommand;
}

const SlurmCommand& SinfoCommand() {
  static constexpr SlurmCommand kCommand = {"sinfo", "show partitions and nodes", "", kOfSinfo};
  return kCommand;
}

const SlurmCommand& ScancelCommand() {
  static constexpr SlurmCommand kCommand = {"scancel", "end jobs, or signal them", "[JOB...]",
                                            kOfScancel};
  return kCommand;
}

const SlurmCommand& ScontrolCommand() {
  static constexpr SlurmCommand kCommand = {
      "scontrol", "show and change jobs",
      "show job|node|partition|config|hostnames|hostlist ...; hold|release|requeue|requeuehold "
      "JOB...; update JobId=JOB NAME=VALUE...; ping",
      kOfScontrol};
  return kCommand;
}

std::vector<const SlurmCommand*> AllSlurmCommands() {
  return {&SbatchCommand(), &SrunCommand(),    &SallocCommand(),   &SqueueCommand(),
          &SacctCommand(),  &ScancelCommand(), &ScontrolCommand(), &SinfoCommand(),
          &SshareCommand(), &SprioCommand(),   &SstatCommand(),    &SacctmgrCommand()};
}

}  // namespace berth
