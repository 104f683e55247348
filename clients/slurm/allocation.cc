#include "clients/slurm/allocation.h"

#include <algorithm>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/topology/node_names.h"
#include "clients/session/array_range.h"
#include "clients/session/begin_time.h"

namespace berth {
namespace {

constexpr int32_t kMostNodes = 10'000;
constexpr int32_t kMostTasks = 1'000'000;
constexpr int32_t kMostCpus = 100'000;
constexpr int32_t kMostGpus = 128;
constexpr int32_t kMostPriority = 1'000'000;
constexpr int32_t kUsualNice = 100;

absl::Status Invalid(absl::string_view what, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(what, ", got \"", text, "\""));
}

absl::Status ReadCount(const std::string& option, const std::string& text, int32_t most, int* out) {
  const auto count = ParseSlurmCount(option, text, 1, most);
  if (count.ok()) *out = *count;
  return count.status();
}

absl::Status ReadMemory(const std::string& text, int64_t* bytes) {
  const auto read = ParseSlurmMemory(text);
  if (!read.ok()) return read.status();
  if (*read == 0) {
    return absl::InvalidArgumentError("0, all memory of a node, is not built: write how much");
  }
  *bytes = *read;
  return absl::OkStatus();
}

// "4", "a100:4".
absl::Status ReadGpus(const std::string& option, absl::string_view text, GpuCount* gpus) {
  const size_t colon = text.rfind(':');
  if (colon != absl::string_view::npos) {
    gpus->model = std::string(text.substr(0, colon));
    text = text.substr(colon + 1);
  }
  if (absl::StrContains(text, ','))
    return Invalid("several types of GPUs are not built: write one", text);
  return ReadCount(option, std::string(text), kMostGpus * kMostNodes, &gpus->count);
}

// "gpu", "gpu:2", "gpu:a100:2", "shard:1": joined by commas.
absl::Status ReadGres(const std::string& text, AllocationRequest* request) {
  if (absl::AsciiStrToLower(text) == "none") return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    absl::ConsumePrefix(&part, "gres/");
    absl::ConsumePrefix(&part, "gres:");
    const size_t colon = part.find(':');
    const std::string name(part.substr(0, colon));
    absl::string_view rest = colon == absl::string_view::npos ? "1" : part.substr(colon + 1);
    if (name == "gpu") {
      const bool type_only =
          !rest.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(rest.back()));
      const bool only = type_only && !absl::StrContains(rest, ':');
      const std::string gpus = only ? absl::StrCat(rest, ":1") : std::string(rest);
      if (absl::Status status = ReadGpus("gres", gpus, &request->gpus_per_node); !status.ok())
        return status;
      continue;
    }
    int count = 0;
    absl::Status status = ReadCount("gres", std::string(rest), kMostPriority, &count);
    if (!status.ok()) return status;
    request->counters[name] = count;
  }
  return absl::OkStatus();
}

absl::Status ReadNodes(const std::string& text, int* nodes) {
  const size_t dash = text.find('-');
  int most = 0;
  absl::Status status = ReadCount("nodes", text.substr(0, dash), kMostNodes, nodes);
  if (!status.ok() || dash == std::string::npos) return status;
  status = ReadCount("nodes", text.substr(dash + 1), kMostNodes, &most);
  if (status.ok() && most < *nodes) return Invalid("--nodes: expected MIN-MAX", text);
  return status;
}

// "afterok:1:2,afterany:3".
absl::Status ReadDependencies(const std::string& text, AllocationRequest* request) {
  if (absl::StrContains(text, '?')) {
    return Invalid("joined by \"?\" (any of them) is not built: join by commas (all of them)",
                   text);
  }
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> words = absl::StrSplit(part, ':');
    Dependency dependency;
    const std::string kind = absl::AsciiStrToLower(words[0]);
    if (kind == "afterok") {
      dependency.condition = v1::JobDependency::AFTER_OK;
    } else if (kind == "afterany") {
      dependency.condition = v1::JobDependency::AFTER_ANY;
    } else if (kind == "afternotok") {
      dependency.condition = v1::JobDependency::AFTER_NOT_OK;
    } else {
      return Invalid(
          "only afterok, afterany and afternotok are built: use one of them, after the job's end",
          part);
    }
    for (size_t i = 1; i < words.size(); ++i) {
      dependency.number = words[i];
      request->dependencies.push_back(dependency);
    }
    if (words.size() < 2) return Invalid("expected a job after the colon", part);
  }
  return absl::OkStatus();
}

absl::Status ReadNice(const std::string& text, AllocationRequest* request) {
  int32_t nice = kUsualNice;
  if (!text.empty() && (!absl::SimpleAtoi(text, &nice) || std::abs(nice) > kMostPriority))
    return Invalid("--nice: expected a number", text);
  request->priority = -nice;
  return absl::OkStatus();
}

absl::Status ReadPriority(const std::string& text, AllocationRequest* request) {
  int32_t priority = 0;
  if (!absl::SimpleAtoi(text, &priority) || std::abs(priority) > kMostPriority)
    return Invalid("--priority: expected a number from -1000000 to 1000000", text);
  request->priority = priority;
  return absl::OkStatus();
}

// "a&b"; "a|b" and counts have no place in Berth.
absl::Status ReadFeatures(const std::string& text, AllocationRequest* request) {
  if (text.find_first_of("|*[]()") != std::string::npos)
    return Invalid("--constraint: only features joined by & are built", text);
  request->features.clear();
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("&,"), absl::SkipWhitespace()))
    request->features.emplace_back(part);
  return absl::OkStatus();
}

absl::Status ReadExcluded(const std::string& text, AllocationRequest* request) {
  NameLists lists;
  auto names = lists.ExpandNodes(text);
  if (!names.ok()) return names.status();
  request->excluded = *std::move(names);
  return absl::OkStatus();
}

using Reader = std::function<absl::Status(const std::string&, AllocationRequest*)>;

template <class Member>
Reader TextInto(Member member) {
  return [member](const std::string& text, AllocationRequest* request) {
    request->*member = text;
    return absl::OkStatus();
  };
}

const std::map<std::string, Reader>& SizeReaders() {
  using R = AllocationRequest;
  const auto count = [](const char* option, int32_t most, int R::*member) {
    return [=](const std::string& text, R* request) {
      return ReadCount(option, text, most, &(request->*member));
    };
  };
  const auto memory = [](int64_t R::*member) {
    return
        [=](const std::string& text, R* request) { return ReadMemory(text, &(request->*member)); };
  };
  const auto gpus = [](const char* option, GpuCount R::*member) {
    return [=](const std::string& text, R* request) {
      return ReadGpus(option, text, &(request->*member));
    };
  };
  static const std::map<std::string, Reader> kReaders = {
      {"nodes", [](const std::string& text, R* r) { return ReadNodes(text, &r->nodes); }},
      {"ntasks", count("ntasks", kMostTasks, &R::tasks)},
      {"ntasks-per-node", count("ntasks-per-node", kMostCpus, &R::tasks_per_node)},
      {"cpus-per-task", count("cpus-per-task", kMostCpus, &R::cpus_per_task)},
      {"cpus-per-gpu", count("cpus-per-gpu", kMostCpus, &R::cpus_per_gpu)},
      {"mem", memory(&R::memory_per_node)},
      {"mem-per-cpu", memory(&R::memory_per_cpu)},
      {"mem-per-gpu", memory(&R::memory_per_gpu)},
      {"tmp", memory(&R::scratch)},
      {"gpus", gpus("gpus", &R::gpus)},
      {"gpus-per-node", gpus("gpus-per-node", &R::gpus_per_node)},
      {"gpus-per-task", gpus("gpus-per-task", &R::gpus_per_task)},
      {"gres", ReadGres}};
  return kReaders;
}

absl::Status ReadTime(const std::string& text, AllocationRequest* request) {
  const auto time = ParseSlurmTime(text);
  if (time.ok()) request->time = *time;
  return time.status();
}

absl::Status ReadSignal(const std::string& text, AllocationRequest* request) {
  const auto signal = ParseSignalBefore(text);
  if (signal.ok()) request->signal = *signal;
  return signal.status();
}

absl::Status ReadArray(const std::string& text, AllocationRequest* request) {
  auto array = ParseArray(text);
  if (array.ok()) request->array = *std::move(array);
  return array.status();
}

const std::map<std::string, Reader>& OtherReaders() {
  using R = AllocationRequest;
  static const std::map<std::string, Reader> kReaders = {
      {"job-name", TextInto(&R::name)},
      {"account", TextInto(&R::account)},
      {"comment", TextInto(&R::comment)},
      {"partition", TextInto(&R::partition)},
      {"qos", TextInto(&R::qos)},
      {"chdir", TextInto(&R::directory)},
      {"time", ReadTime},
      {"signal", ReadSignal},
      {"array", ReadArray},
      {"dependency", ReadDependencies},
      {"constraint", ReadFeatures},
      {"exclude", ReadExcluded},
      {"nice", ReadNice},
      {"priority", ReadPriority},
      {"hold",
       [](const std::string&, R* r) {
         r->hold = true;
         return absl::OkStatus();
       }},
      {"requeue",
       [](const std::string&, R* r) {
         r->requeue = true;
         return absl::OkStatus();
       }},
      {"no-requeue", [](const std::string&, R* r) {
         r->requeue = false;
         return absl::OkStatus();
       }}};
  return kReaders;
}

absl::Status ReadOne(const GivenOption& given, const AllocationContext& context,
                     AllocationRequest* request) {
  const std::string name = given.option->name;
  if (name == "begin") {
    const auto begin = ParseBeginTime(given.value, context.now, context.zone);
    if (begin.ok()) request->begin = *begin;
    return begin.status();
  }
  if (name == "clusters" && given.value != context.config.cluster_name()) {
    return Invalid(absl::StrCat("this is the cluster ", context.config.cluster_name()),
                   given.value);
  }
  if (name == "kill-on-invalid-dep" && given.value != "yes")
    return Invalid("a dependency that can no longer be met always ends the job: write yes",
                   given.value);
  for (const auto* readers : {&SizeReaders(), &OtherReaders()}) {
    const auto reader = readers->find(name);
    if (reader != readers->end()) return reader->second(given.value, request);
  }
  return absl::OkStatus();
}

// How many Slurm tasks fit on the node while it is empty.
int TasksOn(const v1::Node& node, const AllocationRequest& request) {
  const int64_t cpus = std::max(request.cpus_per_task, 1);
  const v1::NodeInventory& inventory = node.inventory();
  int64_t tasks = inventory.cpu_millis() / (cpus * 1000);
  if (request.memory_per_cpu > 0)
    tasks = std::min(tasks, inventory.memory_bytes() / (request.memory_per_cpu * cpus));
  if (request.gpus_per_task.count > 0) {
    const auto capacity = node.status().capacity().counts().find("gpu");
    const double gpus = capacity == node.status().capacity().counts().end() ? 0 : capacity->second;
    tasks = std::min(tasks, static_cast<int64_t>(gpus) / request.gpus_per_task.count);
  }
  return static_cast<int>(std::min<int64_t>(tasks, kMostCpus));
}

}  // namespace

absl::StatusOr<AllocationRequest> ReadAllocation(const SlurmArguments& arguments,
                                                 const AllocationContext& context) {
  AllocationRequest request;
  for (const GivenOption& given : arguments.options) {
    const absl::Status status = ReadOne(given, context, &request);
    if (status.ok()) continue;
    const std::string own = absl::StrCat("--", given.option->name, ": ");
    return absl::InvalidArgumentError(
        absl::StrCat(given.source, ": ", absl::StripPrefix(status.message(), own)));
  }
  return request;
}

bool NeedsNodes(const AllocationRequest& request) {
  return request.nodes == 0 && request.tasks > 1 && request.tasks_per_node == 0;
}

absl::Status SpreadTasks(const std::vector<v1::Node>& nodes, AllocationRequest* request) {
  std::vector<int> room;
  for (const v1::Node& node : nodes) room.push_back(TasksOn(node, *request));
  std::sort(room.rbegin(), room.rend());
  for (size_t count = 1; count <= room.size(); ++count) {
    const int most = static_cast<int>(count);
    const int each = (request->tasks + most - 1) / most;
    if (room[count - 1] < each) continue;
    request->tasks_per_node = each;
    request->nodes = (request->tasks + each - 1) / each;
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no nodes can hold ", request->tasks, " tasks of ",
                   std::max(request->cpus_per_task, 1), " CPUs: ask for fewer, or give --nodes"));
}

absl::Status CompleteSizes(AllocationRequest* request) {
  AllocationRequest& r = *request;
  const auto parts = [](int whole, int each) { return (whole + each - 1) / each; };
  if (r.cpus_per_gpu > 0) {
    if (r.gpus_per_task.count == 0 || r.cpus_per_task > 0)
      return Invalid("--cpus-per-gpu: needs --gpus-per-task, and no --cpus-per-task", "");
    r.cpus_per_task = r.cpus_per_gpu * r.gpus_per_task.count;
  }
  r.cpus_given = r.cpus_per_task > 0;
  if (!r.cpus_given) r.cpus_per_task = 1;
  if (r.nodes == 0 && r.tasks_per_node > 0 && r.tasks > 0)
    r.nodes = parts(r.tasks, r.tasks_per_node);
  if (r.nodes == 0) r.nodes = 1;
  if (r.tasks == 0) r.tasks = r.nodes * std::max(r.tasks_per_node, 1);
  if (r.tasks < r.nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nodes=", r.nodes, " with --ntasks=", r.tasks, ": each node needs a task"));
  }
  const int each = parts(r.tasks, r.nodes);
  if (r.tasks_per_node == 0) r.tasks_per_node = each;
  if (r.tasks_per_node < each) {
    return absl::InvalidArgumentError(absl::StrCat("--ntasks-per-node=", r.tasks_per_node, ": ",
                                                   r.tasks, " tasks need ", each, " on each of ",
                                                   r.nodes, " nodes"));
  }
  r.tasks_per_node = std::min(r.tasks_per_node, r.tasks);
  return absl::OkStatus();
}

}  // namespace berth
