#include "clients/cli/volcano_plugins.h"

#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "clients/cli/pod_hosts.h"

namespace berth {
namespace {

using volcano::v1::JobSpec;
using PluginWords = google::protobuf::RepeatedPtrField<std::string>;

struct PluginMeaning {
  const char* name;
  const char* text;
};
constexpr PluginMeaning kPlugins[] = {
    {"env",
     "env: VC_TASK_INDEX is BERTH_GROUP_INDEX; the program env in front of the command sets it"},
    {"ssh", "ssh: there are no keys; see \"MPI without ssh\" in Berth's examples"},
    {"mpi",
     "mpi: mpirun reaches the workers by mpi-launch-agent in place of ssh: the image needs it and "
     "berth; see \"MPI without ssh\" in Berth's examples"},
    {"pytorch", "pytorch: MASTER_ADDR and MASTER_PORT are those of rank 0, whatever it says"},
    {"tensorflow",
     "tensorflow: each task has a port of its own in TF_CONFIG, from the plugin's port on, because "
     "tasks of one node share its ports"},
    {"ray", "ray: the ports are those of the node of the head"},
};

constexpr char kHostsDirectory[] = "/etc/volcano";
constexpr int kMaxGivenHosts = 512;  // to jobs that do not use them, as far as one can see

// Arguments as Go's flags read them: "--port=5000", "-port 5000".
class Arguments {
 public:
  explicit Arguments(const PluginWords& words) {
    for (int i = 0; i < words.size(); ++i) {
      absl::string_view word = words[i];
      if (!absl::ConsumePrefix(&word, "--") && !absl::ConsumePrefix(&word, "-")) continue;
      const size_t equals = word.find('=');
      if (equals != absl::string_view::npos)
        values_[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
      else if (i + 1 < words.size())
        values_[std::string(word)] = words[++i];
    }
  }

  std::string Text(const char* name, const char* otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  int Port(const char* name, int otherwise) const {
    int port = 0;
    const auto found = values_.find(name);
    const bool number = found != values_.end() && absl::SimpleAtoi(found->second, &port);
    return number && port > 0 && port < 65536 ? port : otherwise;
  }

 private:
  std::map<std::string, std::string> values_;
};

std::string VolcanoTaskName(const JobSpec& spec, int task) {
  const std::string& name = spec.tasks(task).name();
  return name.empty() ? absl::StrCat("default", task) : name;
}

int ReplicasOfTask(const JobSpec& spec, int task) {
  return spec.tasks(task).has_replicas() ? spec.tasks(task).replicas() : 1;
}

// "train-worker-0.train"
std::vector<std::string> HostsOf(const JobSpec& spec, const std::string& job_name, int task) {
  std::vector<std::string> hosts;
  for (int i = 0; i < ReplicasOfTask(spec, task); ++i)
    hosts.push_back(
        absl::StrCat(job_name, "-", VolcanoTaskName(spec, task), "-", i, ".", job_name));
  return hosts;
}

int TaskNamed(const JobSpec& spec, const std::string& name) {
  for (int i = 0; i < spec.tasks_size(); ++i) {
    if (VolcanoTaskName(spec, i) == name) return i;
  }
  return -1;
}

// "VC_PS_WORKER_HOSTS"
std::string VariableOf(const std::string& task, const char* what) {
  return absl::StrCat("VC_", absl::AsciiStrToUpper(absl::StrReplaceAll(task, {{"-", "_"}})), what);
}

// A reference to what svc gives: a variable, or its files.
bool UsesSvc(const std::string& text) {
  if (absl::StrContains(text, kHostsDirectory)) return true;
  for (size_t end = 0; end < text.size();) {
    const absl::string_view name = NextName(text, &end);
    if (absl::StartsWith(name, "VC_") &&
        (absl::EndsWith(name, "_HOSTS") || absl::EndsWith(name, "_NUM")))
      return true;
  }
  return false;
}

bool UsesMpi(const std::string& text) {
  for (size_t end = 0; end < text.size();) {
    if (NextName(text, &end) == "MPI_HOST") return true;
  }
  return false;
}

// A variable that the manifest sets itself stays.
template <class Process>
void SetVariable(const std::string& name, const std::string& value, Process* process) {
  for (const v1::EnvVar& variable : process->env()) {
    if (variable.name() == name) return;
  }
  v1::EnvVar& variable = *process->add_env();
  variable.set_name(name);
  variable.set_value(value);
}

class PluginsConverter {
 public:
  PluginsConverter(const std::string& path, const JobSpec& in, ForeignJob& job)
      : path_(path + ".plugins"),
        in_(in),
        job_(job),
        document_(job.document()),
        name_(job.manifest().job.name()) {}

  void Convert(const std::string& space) {
    const auto* plugins = in_.plugins().GetDescriptor();
    for (const PluginMeaning& known : kPlugins) {
      const std::string plugin = absl::StrCat(path_, ".", known.name);
      if (document_.Has(plugin)) document_.Warn(plugin, known.text);
    }
    bool any = false;  // the others need svc, and Volcano adds it
    for (int i = 0; i < plugins->field_count(); ++i) {
      const absl::string_view plugin = plugins->field(i)->name();
      any = any || (plugin != "env" && plugin != "ssh" && Has(plugin));
    }
    const bool used = AnyText(job_.spec(), UsesSvc);
    if (used && !any) {
      document_.Error(path_,
                      "the hosts of tasks are used, and the plugin svc, which gives them, "
                      "is missing");
    }
    if (!Has("mpi") && AnyText(job_.spec(), UsesMpi)) {
      document_.Error(path_, "MPI_HOST is used, and the plugin mpi, which sets it, is missing");
    }
    const bool always = any && (used || (AllHaveImages() && Tasks() <= kMaxGivenHosts) ||
                                Has("tensorflow") || Has("ray") || Has("mpi"));
    if (Has("svc") && !always) {
      document_.Warn(path_ + ".svc",
                     "svc: the hosts of all tasks are in the file BERTH_HOSTFILE of each task");
    }
    const bool named = GiveHostNames(path_, Pods(), space, always, &job_);
    if (always && !named && used)
      document_.Error(path_, "the hosts of tasks are used, and the tasks have no names");
    if (!always || !named) return;
    GiveSvc();
    if (Has("mpi")) GiveMpi();
  }

 private:
  bool Has(absl::string_view plugin) const {
    return document_.Has(absl::StrCat(path_, ".", plugin));
  }
  bool AllHaveImages() const {
    for (const v1::TaskGroup& group : job_.spec().groups()) {
      if (group.image().empty()) return false;
    }
    return true;
  }
  int64_t Tasks() const {
    int64_t tasks = 0;
    for (int i = 0; i < in_.tasks_size(); ++i) tasks += ReplicasOfTask(in_, i);
    return tasks;
  }

  std::vector<PodHosts> Pods() const {
    std::vector<PodHosts> pods;
    const std::string head = Arguments(in_.plugins().ray()).Text("head", "head");
    for (int i = 0; i < in_.tasks_size(); ++i) {
      PodHosts& one = pods.emplace_back();
      one.group = i;
      one.names =
          PodNames(absl::StrCat(name_, "-", VolcanoTaskName(in_, i), "-"), ReplicasOfTask(in_, i));
      one.subdomain = name_;
      const bool serves =
          Has("ray") && VolcanoTaskName(in_, i) == head && ReplicasOfTask(in_, i) == 1;
      if (serves) one.service = name_;
    }
    return pods;
  }

  // To each process of each task.
  template <class Give>
  void ForEachProcess(v1::TaskGroup* group, Give give) {
    give(group);
    for (v1::Container& container : *group->mutable_containers()) give(&container);
  }

  void GiveSvc() {
    v1::Volume files;
    files.set_path(kHostsDirectory);
    std::map<std::string, std::string> variables;
    for (int i = 0; i < in_.tasks_size(); ++i) {
      const std::vector<std::string> hosts = HostsOf(in_, name_, i);
      const std::string task = VolcanoTaskName(in_, i);
      v1::VolumeFile& file = *files.mutable_files()->add_files();
      file.set_name(task + ".host");
      file.set_content(absl::StrJoin(hosts, "\n"));
      variables[VariableOf(task, "_HOSTS")] = absl::StrJoin(hosts, ",");
      variables[VariableOf(task, "_NUM")] = absl::StrCat(hosts.size());
    }
    const bool mounts = AllHaveImages();  // without an image, there is no such directory
    if (!mounts && AnyText(job_.spec(), [](const std::string& text) {
          return absl::StrContains(text, kHostsDirectory);
        })) {
      document_.Error(path_, "/etc/volcano/ needs an image: VC_TASK_HOSTS has the same hosts");
    }
    for (v1::TaskGroup& group : *job_.spec().mutable_groups()) {
      ForEachProcess(&group, [&](auto* process) {
        for (const auto& [name, value] : variables) SetVariable(name, value, process);
        if (mounts) *process->add_volumes() = files;
      });
    }
  }

  // As in an MPIJob, but the hosts are those of MPI_HOST.
  void GiveMpi() {
    const Arguments arguments(in_.plugins().mpi());
    const int master = TaskNamed(in_, arguments.Text("master", "master"));
    const std::string worker_name = arguments.Text("worker", "worker");
    const int worker = TaskNamed(in_, worker_name);
    if (master < 0 || worker < 0)
      return document_.Error(path_ + ".mpi", "mpi: there is no such master or worker task");
    ForEachProcess(job_.spec().mutable_groups(master), [&](auto* process) {
      SetVariable("MPI_HOST", absl::StrJoin(HostsOf(in_, name_, worker), ","), process);
      SetVariable("OMPI_MCA_plm_rsh_agent", "mpi-launch-agent", process);
      SetVariable("OMPI_MCA_plm_rsh_no_tree_spawn", "1", process);
    });
  }

  const std::string path_;
  const JobSpec& in_;
  ForeignJob& job_;
  ForeignDocument& document_;
  const std::string name_;
};

void SetContainerCommand(const std::string& container, const std::string& command,
                         kubernetes::v1::PodSpec* pod) {
  for (kubernetes::v1::Container& one : *pod->mutable_containers()) {
    if (one.name() != container) continue;
    one.clear_command();
    for (const char* word : {"sh", "-c"}) one.add_command(word);
    one.add_command(command);
  }
}

}  // namespace

void SetRayCommands(const std::string& path, const std::string& job_name, JobSpec* spec,
                    ForeignDocument* document) {
  const std::string plugin = path + ".plugins.ray";
  if (!document->Has(plugin)) return;
  const Arguments arguments(spec->plugins().ray());
  const std::string head_name = arguments.Text("head", "head");
  const int head = TaskNamed(*spec, head_name);
  const int worker = TaskNamed(*spec, arguments.Text("worker", "worker"));
  const int port = arguments.Port("port", 6379);
  if (head < 0)
    return document->Error(plugin, absl::StrCat("ray: there is no task \"", head_name, "\""));
  SetContainerCommand(
      arguments.Text("headContainer", "head"),
      absl::StrCat("ray start --head --block --dashboard-host=0.0.0.0 --port=", port,
                   " --dashboard-port=", arguments.Port("dashboardPort", 8265),
                   " --ray-client-server-port=", arguments.Port("clientPort", 10001)),
      spec->mutable_tasks(head)->mutable_template_()->mutable_spec());
  if (worker < 0) return;
  SetContainerCommand(arguments.Text("workerContainer", "worker"),
                      absl::StrCat("ray start --block --address=", job_name, "-", head_name, "-0.",
                                   job_name, ":", port),
                      spec->mutable_tasks(worker)->mutable_template_()->mutable_spec());
}

std::string TensorFlowConfig(const JobSpec& spec, const std::string& job_name, int task) {
  constexpr const char* kTypes[] = {"ps", "worker", "chief", "evaluator"};
  const Arguments arguments(spec.plugins().tensorflow());
  int port = arguments.Port("port", 2222);
  std::string cluster, type;
  for (const char* one : kTypes) {
    const int of = TaskNamed(spec, arguments.Text(one, one));
    if (of < 0) continue;
    if (of == task) type = one;
    std::vector<std::string> hosts;
    for (const std::string& host : HostsOf(spec, job_name, of))
      hosts.push_back(absl::StrCat("\"", host, ":", port++, "\""));
    absl::StrAppend(&cluster, cluster.empty() ? "" : ",", "\"", one, "\":[",
                    absl::StrJoin(hosts, ","), "]");
  }
  if (type.empty()) return "";
  return absl::StrCat("{\"cluster\":{", cluster, "},\"task\":{\"type\":\"", type,
                      "\",\"index\":${BERTH_GROUP_INDEX}}}");
}

void ConvertPlugins(const std::string& path, const JobSpec& spec, const std::string& space,
                    ForeignJob* job) {
  PluginsConverter(path, spec, *job).Convert(space);
}

}  // namespace berth
