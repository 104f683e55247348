#include "clients/cli/manifest_hints.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "berth/v1/job.pb.h"
#include "support/quantity.h"

namespace berth {
namespace {

using google::protobuf::Descriptor;

struct Habit {
  const char* key;
  const char* hint;  // $0 is the value
};

// Names of the same resource in other systems.
struct ResourceName {
  const char* key;
  const char* berth;
};
constexpr ResourceName kResourceNames[] = {
    {"cpu", "cpu"},           {"cpus", "cpu"},
    {"core", "cpu"},          {"cores", "cpu"},
    {"vcpu", "cpu"},          {"vcpus", "cpu"},
    {"ncpus", "cpu"},         {"cpusPerTask", "cpu"},
    {"cpus-per-task", "cpu"}, {"memory", "memory"},
    {"mem", "memory"},        {"ram", "memory"},
    {"gpu", "gpu"},           {"gpus", "gpu"},
    {"ngpus", "gpu"},         {"numGpus", "gpu"},
    {"gres", "gpu"},          {"nvidia.com/gpu", "gpu"},
    {"amd.com/gpu", "gpu"},   {"scratch", "scratch"},
    {"disk", "scratch"},      {"ephemeral-storage", "scratch"},
};

constexpr Habit kJobHabits[] = {
    {"metadata", "a Berth manifest has none: write name: and labels: at the top"},
    {"spec", "a Berth manifest has none: write its keys at the top, next to name:"},
    {"job-name", "write name: $0"},
    {"jobName", "write name: $0"},
    {"account", "write user: $0, or choose a queue: with queue:"},
    {"time", "write walltime: 1h30m"},
    {"timeout", "write walltime: 1h30m"},
    {"timeLimit", "write walltime: 1h30m"},
    {"time-limit", "write walltime: 1h30m"},
    {"activeDeadlineSeconds", "write walltime: $0s"},
    {"ttlSecondsAfterFinished", "write ttlAfterFinished: $0s"},
    {"backoffLimit", "write maxRetries: $0"},
    {"retries", "write maxRetries: $0"},
    {"restarts", "write maxRetries: $0"},
    {"restartPolicy", "write maxRetries: 3, or omit it for no retries"},
    {"priorityClassName", "write priorityClass: $0"},
    {"schedulerName", "leave it out"},
    {"begin", "write startAfter: 2026-12-01T10:00:00Z"},
    {"startTime", "write startAfter: 2026-12-01T10:00:00Z"},
    {"dependency", "write dependencies: [{job: NAME, condition: AfterOk}]"},
    {"depends", "write dependencies: [{job: NAME, condition: AfterOk}]"},
    {"dependsOn", "for a job, write dependencies: [{job: NAME, condition: AfterOk}]"},
    {"after", "write dependencies: [{job: NAME, condition: AfterOk}]"},
    {"hold", "write suspended: true"},
    {"suspend", "write suspended: true"},
    {"minMember", "write minAvailable: $0"},
    {"tasks", "write groups:, with name:, replicas: and command: in each"},
    {"template", "write groups:, with name:, replicas: and command: in each"},
    {"containers", "write groups:, with name:, replicas: and command: in each"},
};

constexpr Habit kGroupHabits[] = {
    {"cmd", "write command: [PROGRAM, ARGUMENT]"},
    {"imagePullSecrets", "write registryAuth: FILE, the path of a file on the nodes"},
    {"arguments", "write args: [ARGUMENT]"},
    {"entrypoint", "write command: [PROGRAM, ARGUMENT]"},
    {"run", "write command: [PROGRAM, ARGUMENT], or command: and a line for the shell"},
    {"script", "write command: [PROGRAM, ARGUMENT], or command: and a line for the shell"},
    {"exec", "write command: [PROGRAM, ARGUMENT]"},
    {"environment", "write env: {NAME: value}"},
    {"envs", "write env: {NAME: value}"},
    {"cwd", "write workingDir: $0"},
    {"dir", "write workingDir: $0"},
    {"workdir", "write workingDir: $0"},
    {"chdir", "write workingDir: $0"},
    {"working-dir", "write workingDir: $0"},
    {"count", "write replicas: $0"},
    {"instances", "write replicas: $0"},
    {"nodes", "write replicas: $0, the number of tasks; resources: say how much each takes"},
    {"numNodes", "write replicas: $0, the number of tasks; resources: say how much each takes"},
    {"ntasks", "write replicas: $0"},
    {"parallelism", "write replicas: $0"},
    {"completions", "write replicas: $0"},
    {"container", "write image: NAME"},
    {"template", "a group is one process: write command: and image: here"},
    {"constraint", "write nodeSelector: {matchLabels: {KEY: value}}"},
    {"nodeLabels", "write nodeSelector: {matchLabels: {KEY: value}}"},
    {"nodelist", "write nodeSelector: {matchLabels: {KEY: value}}"},
    {"nodeName", "write nodeSelector: {matchLabels: {KEY: value}}"},
    {"securityContext", "write runAs: USER at the top, next to name:"},
    {"volumeMounts", "write volumes: [{path: /data, hostPath: /srv/data}] in the group"},
    {"mountPath", "write path: where the task sees the volume"},
    {"emptyDir", "write scratch: {} or tmpfs: {size: 1Gi}"},
    {"configMap", "write files: {files: [{name: NAME, content: TEXT}]}"},
    {"ports", "leave it out: MASTER_PORT is a free port of rank 0's node"},
    {"requests", "write resources: {cpu: 1, memory: 1Gi}"},
    {"limits", "write resources: {cpu: 1, memory: 1Gi}"},
};

constexpr Habit kResourceHabits[] = {
    {"requests", "a task may use what it requests: write the keys here, such as cpu: 1"},
    {"limits", "a task may use what it requests: write the keys here, such as cpu: 1"},
    {"claims", "write gpu: 1"},
};

template <size_t n>
const Habit* Find(const Habit (&habits)[n], absl::string_view key) {
  const Habit* found =
      std::find_if(habits, habits + n, [&](const Habit& habit) { return key == habit.key; });
  return found == habits + n ? nullptr : found;
}

absl::string_view ResourceOfKey(absl::string_view key) {
  for (const ResourceName& name : kResourceNames) {
    if (key == name.key) return name.berth;
  }
  return "";
}

bool IsField(const Descriptor& type, absl::string_view key) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->json_name() == key || type.field(i)->name() == key) return true;
  }
  return false;
}

// For a hint; "..." for a list or a map.
std::string ShownText(const YamlNode& value) { return value.is_scalar() ? value.text : "..."; }

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// In Slurm, plain numbers are megabytes. "3G" may mean powers of 1000 or of 1024.
std::string MemoryHint(const std::string& berth, const std::string& text) {
  if (IsNumber(text)) {
    return absl::Substitute("write $0: $1Mi, or $0: $1Gi; a plain number is in bytes", berth, text);
  }
  const bool decimal = !text.empty() && absl::StrContains("KMGT", text.substr(text.size() - 1));
  if (!decimal || !ParseBytes(text).ok()) return absl::Substitute("write $0: $1", berth, text);
  return absl::Substitute("write $0: $1 (in powers of 1000) or $0: $1i (of 1024)", berth, text);
}

std::string ResourceHint(absl::string_view berth, const YamlNode& value) {
  const std::string text = ShownText(value);
  if (berth == "memory" || berth == "scratch") return MemoryHint(std::string(berth), text);
  const size_t colon = text.rfind(':');  // "gpu:a100:8"
  const std::string count = colon == std::string::npos ? text : text.substr(colon + 1);
  return absl::Substitute("write $0: $1", berth, count);
}

// Amounts written next to `resources`, or two levels above.
std::string MisplacedResource(absl::string_view berth, const YamlNode& value, bool in_group) {
  std::string text = ResourceHint(berth, value);
  text = text.substr(std::string("write ").size());
  if (in_group) return absl::StrCat("write it below resources:, as ", text);
  return absl::StrCat("it belongs to a group: write it below groups: and resources:, as ", text);
}

std::string JobHint(const YamlNode& key, const YamlNode& value) {
  if (key.text == "partition" && value.is_scalar())
    return absl::StrCat("Slurm's partitions are queues: write queue: ", value.text);
  if (const Habit* habit = Find(kJobHabits, key.text))
    return absl::Substitute(habit->hint, ShownText(value));
  if (const auto berth = ResourceOfKey(key.text); !berth.empty())
    return MisplacedResource(berth, value, false);
  if (key.text == "resources" || IsField(*v1::TaskGroup::descriptor(), key.text))
    return absl::StrCat("it belongs to a group: write it below groups:, next to the group's name:");
  if (const Habit* habit = Find(kGroupHabits, key.text))
    return absl::StrCat("below groups: ", absl::Substitute(habit->hint, ShownText(value)));
  return "";
}

std::string GroupHint(const YamlNode& key, const YamlNode& value) {
  if (const auto berth = ResourceOfKey(key.text); !berth.empty())
    return MisplacedResource(berth, value, true);
  if (const Habit* habit = Find(kGroupHabits, key.text))
    return absl::Substitute(habit->hint, ShownText(value));
  if (IsField(*v1::JobSpec::descriptor(), key.text))
    return "it belongs to the job: write it at the top, next to name: and queue:";
  if (const Habit* habit = Find(kJobHabits, key.text))
    return absl::StrCat("at the top, next to name: ",
                        absl::Substitute(habit->hint, ShownText(value)));
  return "";
}

bool HasBlank(absl::string_view text) {
  return text.find_first_of(" \t\n") != absl::string_view::npos;
}

YamlNode TextNode(const YamlNode& like, const char* text) {
  YamlNode word;
  word.kind = YamlNode::Kind::kScalar;
  word.position = like.position;
  word.text = text;
  return word;
}

void PrepareCommand(YamlNode* command) {
  if (!command->is_scalar() || !HasBlank(command->text)) return;
  YamlNode list;
  list.kind = YamlNode::Kind::kList;
  list.position = command->position;
  list.items = {TextNode(*command, "/bin/sh"), TextNode(*command, "-c"), *command};
  *command = std::move(list);
}

// Compose and Docker take "NAME=value".
void PrepareEnvironment(YamlNode* env, YamlErrors* errors) {
  if (!env->is_list()) return;
  const auto is_assignment = [&](const YamlNode& item) {
    const size_t equals = item.is_scalar() ? item.text.find('=') : std::string::npos;
    if (equals == std::string::npos || equals == 0) return false;
    errors->Add(item.position,
                absl::Substitute("env: expected {NAME: value}; write env: {$0: $1}",
                                 item.text.substr(0, equals), item.text.substr(equals + 1)));
    return true;
  };
  env->items.erase(std::remove_if(env->items.begin(), env->items.end(), is_assignment),
                   env->items.end());
}

YamlNode* FindMutable(YamlNode* map, absl::string_view key) {
  for (size_t i = 0; i < map->keys.size(); ++i) {
    if (map->keys[i].text == key) return &map->items[i];
  }
  return nullptr;
}

void CheckWords(const YamlNode& process, YamlErrors* errors) {
  for (const char* key : {"command", "args"}) {
    const YamlNode* words = process.Find(key);
    if (words == nullptr || !words->is_scalar() || !HasBlank(words->text)) continue;
    errors->Add(words->position, absl::StrCat(key,
                                              ": one string with blanks; write a list, as in "
                                              "[PROGRAM, ARGUMENT] or [sh, -c, \"...\"]"));
  }
}

}  // namespace

std::string KeyHint(const Descriptor& type, const YamlNode& key, const YamlNode& value) {
  if (&type == v1::JobSpec::descriptor()) return JobHint(key, value);
  if (&type == v1::TaskGroup::descriptor()) return GroupHint(key, value);
  const bool amounts = &type == v1::ResourceList::descriptor();  // of a queue
  if (!amounts && &type != v1::ResourceRequest::descriptor()) return "";
  if (const Habit* habit = Find(kResourceHabits, key.text); habit && !amounts) return habit->hint;
  const absl::string_view berth = ResourceOfKey(key.text);
  return berth.empty() || berth == key.text ? "" : ResourceHint(berth, value);
}

std::string ApiVersionHint(absl::string_view api_version) {
  if (api_version != "apps/v1") return "";
  return "Berth runs jobs that end, not services";
}

std::string FileHint(absl::string_view text, absl::string_view file) {
  if (!absl::StartsWith(text, "#!")) return "";
  const absl::string_view path_prefix = absl::StrContains(file, "/") ? "" : "./";
  const bool slurm = absl::StrContains(text, "\n#SBATCH");
  return absl::StrCat("a script is not a manifest; to run it, write: berth submit -- ", path_prefix,
                      file,
                      slurm ? " (#SBATCH lines are ignored: give options of berth before --)" : "");
}

void PrepareJob(YamlNode* spec, YamlErrors* errors) {
  YamlNode* groups = FindMutable(spec, "groups");
  if (groups == nullptr) return;
  for (YamlNode& group : groups->items) {
    if (!group.is_map()) continue;
    if (YamlNode* command = FindMutable(&group, "command")) PrepareCommand(command);
    if (YamlNode* env = FindMutable(&group, "env")) PrepareEnvironment(env, errors);
  }
}

void CheckContainerCommands(const YamlNode& node, YamlErrors* errors) {
  for (size_t i = 0; i < node.items.size(); ++i) {
    const YamlNode& value = node.items[i];
    const bool in_map = node.is_map();
    if (in_map && (node.keys[i].text == "containers" || node.keys[i].text == "initContainers")) {
      for (const YamlNode& container : value.items) CheckWords(container, errors);
    } else if (in_map && node.keys[i].text == "trainer") {
      CheckWords(value, errors);
    } else {
      CheckContainerCommands(value, errors);
    }
  }
}

}  // namespace berth
