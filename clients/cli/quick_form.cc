#include "clients/cli/quick_form.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/quick_values.h"
#include "clients/cli/resource_names.h"
#include "clients/session/array_range.h"
#include "clients/session/begin_time.h"
#include "support/number_check.h"
#include "support/quantity.h"

namespace berth {
namespace {

using Strings = std::vector<std::string>;

// The option that sets each field, for errors of the server.
const std::map<std::string, std::string>& OptionsByField() {
  static const auto& options = *new std::map<std::string, std::string>{
      {"name", "--name"},
      {"spec.queue", "--queue"},
      {"spec.priority", "--priority"},
      {"spec.priority_class", "--priority-class"},
      {"spec.preemptible", "--preemptible"},
      {"spec.preempt_mode", "--preempt-mode"},
      {"spec.walltime", "--walltime"},
      {"spec.start_after", "--begin"},
      {"spec.max_retries", "--retries"},
      {"spec.labels", "--label"},
      {"spec.array", "--array"},
      {"spec.dependencies", "--after"},
      {"spec.suspended", "--hold"},
      {"spec.pause", "--lend-gpus"},
      {"spec.pause.devices", "--lend-gpus"},
      {"spec.run_as", "--run-as"},
      {"spec.topology", "--topology"},
      {"spec.strategy", "--strategy"},
      {"spec.groups[0].name", "--group"},
      {"spec.groups[0].replicas", "--replicas"},
      {"spec.groups[0].min_available", "--min-available"},
      {"spec.groups[0].command", "COMMAND"},
      {"spec.groups[0].env", "--env"},
      {"spec.groups[0].working_dir", "--dir"},
      {"spec.groups[0].node_selector", "--node-selector"},
      {"spec.groups[0].image", "--image"},
      {"spec.groups[0].terminal", "--tty"},
      {"spec.interactive", "--idle"},
      {"spec.interactive.idle", "--idle"},
      {"spec.interactive.action", "--idle-action"},
      {"spec.groups[0].resources.cpu_millis", "--cpu"},
      {"spec.groups[0].resources.memory_bytes", "--memory"},
      {"spec.groups[0].resources.scratch_bytes", "--scratch"},
      {"spec.groups[0].resources.devices", "--device"},
      {"spec.groups[0].volumes", "--volume"},
  };
  return options;
}

absl::Status OptionError(const char* option, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", status.message()));
}

template <absl::StatusOr<int64_t> (*parse)(absl::string_view)>
CLI::Validator IsQuantity(const std::string& name) {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        const absl::StatusOr<int64_t> value = parse(text);
        return value.ok() ? "" : std::string(value.status().message());
      },
      name);
}

const CLI::Validator kIsDeviceCount(
    [](const std::string& text) -> std::string {
      const auto pair = KeyValueFrom(text);
      int32_t count = 0;
      const bool ok = !pair.first.empty() && absl::SimpleAtoi(pair.second, &count) && count > 0;
      return ok ? "" : absl::StrCat("expected KIND=COUNT, got \"", text, "\"");
    },
    "KIND=COUNT");

v1::DeviceRequest* AddDevice(const std::string& kind, int32_t count, v1::TaskGroup* group) {
  v1::DeviceRequest* device = group->mutable_resources()->add_devices();
  device->set_kind(kind);
  device->set_count(count);
  return device;
}

// Whole GPUs, or a share of one.
void AddGpus(const QuickForm& form, Manifest* manifest) {
  const bool share = !form.gpu_share.empty(), memory = !form.gpu_memory.empty();
  if (form.gpus == 0 && !share && !memory) return;
  v1::DeviceRequest* gpus =
      AddDevice("gpu", form.gpus, manifest->job.mutable_spec()->mutable_groups(0));
  if (share) gpus->set_share(std::stod(form.gpu_share));
  if (memory) gpus->set_memory_bytes(*ParseBytes(form.gpu_memory));
  const std::string path = "spec.groups[0].resources.devices[0]";
  manifest->options[path] = form.gpus > 0 ? "--gpus" : share ? "--gpu-share" : "--gpu-memory";
  manifest->options[path + ".share"] = "--gpu-share";
  manifest->options[path + ".memory_bytes"] = "--gpu-memory";
}

void SetResources(const QuickForm& form, Manifest* manifest) {
  v1::TaskGroup* group = manifest->job.mutable_spec()->mutable_groups(0);
  if (!form.cpu.empty()) group->mutable_resources()->set_cpu_millis(*ParseCpuMillis(form.cpu));
  if (!form.memory.empty()) group->mutable_resources()->set_memory_bytes(*ParseBytes(form.memory));
  if (!form.scratch.empty())
    group->mutable_resources()->set_scratch_bytes(*ParseBytes(form.scratch));
  AddGpus(form, manifest);
  for (const std::string& device : form.devices) {
    const auto pair = KeyValueFrom(device);
    AddDevice(pair.first, std::stoi(pair.second), group);
  }
}

// As in a manifest, one string with blanks is a shell command.
void SetCommand(const Strings& command, v1::TaskGroup* group) {
  if (command.size() == 1 && command[0].find_first_of(" \t\n") != std::string::npos) {
    group->add_command("/bin/sh");
    group->add_command("-c");
  }
  for (const std::string& word : command) group->add_command(word);
}

void AddVariable(const std::string& name, const std::string& value, v1::TaskGroup* group) {
  v1::EnvVar& added = *group->add_env();
  added.set_name(name);
  added.set_value(value);
}

void SetMaps(const QuickForm& form, v1::JobSpec* spec) {
  v1::TaskGroup* group = spec->mutable_groups(0);
  for (const std::string& variable : form.env) {
    const auto pair = KeyValueFrom(variable);
    AddVariable(pair.first, pair.second, group);
  }
  for (const std::string& label : form.labels) {
    const auto pair = KeyValueFrom(label);
    (*spec->mutable_labels())[pair.first] = pair.second;
  }
  for (const std::string& label : form.node_labels) {
    const auto pair = KeyValueFrom(label);
    (*group->mutable_node_selector()->mutable_match_labels())[pair.first] = pair.second;
  }
  for (const std::string& job : form.after) {
    v1::JobDependency& dependency = *spec->add_dependencies();
    dependency.set_job(job);
    dependency.set_condition(v1::JobDependency::AFTER_OK);
  }
}

// Reads a value that has a parser of its own; "" is no value.
template <class Value, class Set>
absl::Status TakeParsed(const char* option, const std::string& text,
                        absl::StatusOr<Value> (*parse)(absl::string_view), const Set& set) {
  if (text.empty()) return absl::OkStatus();
  absl::StatusOr<Value> value = parse(text);
  if (!value.ok()) return OptionError(option, value.status());
  set(*std::move(value));
  return absl::OkStatus();
}

absl::Status SetParsed(const QuickForm& form, Manifest* manifest) {
  v1::JobSpec& spec = *manifest->job.mutable_spec();
  v1::TaskGroup& group = *spec.mutable_groups(0);
  absl::Status status = TakeParsed(
      "--topology", form.topology, ParseTopology,
      [&](v1::TopologyConstraint value) { *spec.mutable_topology() = std::move(value); });
  status.Update(TakeParsed("--array", form.array, ParseArray,
                           [&](v1::Array value) { *spec.mutable_array() = std::move(value); }));
  const auto add = [&](v1::Volume value) { *group.add_volumes() = std::move(value); };
  for (const std::string& text : form.volumes) {
    status.Update(TakeParsed("--volume", text, ParseVolume, add));
  }
  for (const std::string& text : form.tmpfs) {
    manifest->options[absl::StrCat("spec.groups[0].volumes[", group.volumes_size(), "]")] =
        "--tmpfs";
    status.Update(TakeParsed("--tmpfs", text, ParseTmpfs, add));
  }
  return status;
}

absl::Status SetBegin(const std::string& text, absl::Time now, absl::TimeZone zone,
                      google::protobuf::Timestamp* begin) {
  const absl::StatusOr<absl::Time> time = ParseBeginTime(text, now, zone);
  if (!time.ok()) return time.status();
  begin->set_seconds(absl::ToUnixSeconds(*time));
  return absl::OkStatus();
}

absl::StatusOr<Manifest> QuickJob(const QuickForm& form, const Strings& command, absl::Time now,
                                  absl::TimeZone zone) {
  Manifest manifest;
  manifest.job = form.job;
  manifest.options = OptionsByField();
  v1::JobSpec& spec = *manifest.job.mutable_spec();
  v1::TaskGroup& group = *spec.add_groups();
  group = form.group;
  if (group.name().empty()) group.set_name("worker");
  if (!group.has_replicas()) group.set_replicas(1);
  SetCommand(command, &group);
  SetResources(form, &manifest);
  SetMaps(form, &spec);
  if (!form.walltime.empty()) {
    spec.mutable_walltime()->set_seconds(ParseDuration(form.walltime)->seconds);
    spec.mutable_walltime()->set_nanos(ParseDuration(form.walltime)->nanos);
  }
  if (absl::Status status = SetParsed(form, &manifest); !status.ok()) return status;
  if (!form.begin.empty()) {
    const absl::Status status = SetBegin(form.begin, now, zone, spec.mutable_start_after());
    if (!status.ok()) return OptionError("--begin", status);
  }
  return manifest;
}

// Adds options of the quick form. Each of them marks the command line as quick form.
class QuickOptions {
 public:
  QuickOptions(CLI::App& submit, const std::shared_ptr<QuickForm>& form, const char* heading)
      : submit_(submit), form_(form), heading_(heading) {}

  template <class Value>
  CLI::Option* Add(const char* option, const char* help, std::function<void(const Value&)> set) {
    return submit_
        .add_option_function<Value>(
            option,
            [form = form_, set](const Value& value) {
              form->used = true;
              set(value);
            },
            help)
        ->group(heading_);
  }
  CLI::Option* Text(const char* option, const char* help,
                    std::function<void(const std::string&)> set) {
    return Add<std::string>(option, help, std::move(set));
  }
  CLI::Option* Number(const char* option, const char* help,
                      std::function<void(const int32_t&)> set) {
    return Add<int32_t>(option, help, std::move(set));
  }
  CLI::Option* List(const char* option, const char* help, Strings* values) {
    return Add<Strings>(option, help, [values](const Strings& given) { *values = given; })
        ->allow_extra_args(false);
  }
  // "=false" negates it.
  void Switch(const char* option, const char* help, std::function<void(bool)> set) {
    const auto marked = [form = form_, set](int64_t count) {
      form->used = true;
      set(count > 0);
    };
    submit_.add_flag_function(option, marked, help)->group(heading_);
  }
  void Flag(const char* option, const char* help, std::function<void()> set) {
    const auto marked = [form = form_, set](int64_t) {
      form->used = true;
      set();
    };
    submit_.add_flag_function(option, marked, help)->group(heading_);
  }

 private:
  CLI::App& submit_;
  std::shared_ptr<QuickForm> form_;
  const char* const heading_;
};

// Resources of each task.
void AddResourceOptions(QuickOptions& add, QuickForm* a) {
  add.Number("--gpus,--gpu,-g", "GPUs of each task", [a](int32_t v) { a->gpus = v; })
      ->check(WholeNumber(1));
  add.Text("--gpu-share", "part of one GPU for each task, such as 0.5",
           [a](const std::string& v) { a->gpu_share = v; })
      ->check(RealNumber(0.001, 0.999));
  add.Text("--gpu-memory",
           "least memory of each GPU; without --gpus and --gpu-share: this much of one GPU",
           [a](const std::string& v) { a->gpu_memory = v; })
      ->check(IsQuantity<ParseBytes>("BYTES"));
  add.List("--device", "devices of each task, such as nic=8; may be repeated", &a->devices)
      ->check(kIsDeviceCount);
  add.Text("--cpu,-c", "cores of each task", [a](const std::string& v) { a->cpu = v; })
      ->check(IsQuantity<ParseCpuMillis>("CORES"));
  add.Text("--memory,-m", "memory of each task", [a](const std::string& v) { a->memory = v; })
      ->check(IsQuantity<ParseBytes>("BYTES"));
  add.Text("--scratch", "local disk of each task", [a](const std::string& v) { a->scratch = v; })
      ->check(IsQuantity<ParseBytes>("BYTES"));
}

const std::map<std::string, v1::Strategy>& Strategies() {
  static const auto& strategies = *new std::map<std::string, v1::Strategy>{
      {"binpack", v1::BINPACK}, {"spread", v1::SPREAD}, {"colocate", v1::COLOCATE}};
  return strategies;
}

Strings StrategyNames(const std::map<std::string, v1::Strategy>& map) {
  Strings keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  return keys;
}

// Nodes, image, volumes, user and start time.
void AddPlaceOptions(QuickOptions& add, QuickForm* a) {
  add.List("--node-selector", "only on nodes with this label; may be repeated", &a->node_labels)
      ->check(kIsKeyValue);
  add.Text("--topology",
           "all tasks in one HyperNode of this tier, by name or number, such as rack or 2; "
           "soft:rack prefers one, and does not wait for it",
           [a](const std::string& v) { a->topology = v; });
  add.Text("--strategy", "which nodes: binpack, spread or colocate",
           [a](const std::string& v) { a->job.mutable_spec()->set_strategy(Strategies().at(v)); })
      ->check(CLI::IsMember(StrategyNames(Strategies())));
  add.List("--volume,-v",
           "HOST:PATH[:ro]: a directory or file of the node, at a path of the task's; may be "
           "repeated",
           &a->volumes);
  add.List("--tmpfs",
           "PATH[:SIZE]: an empty directory in memory, such as /tmp:16Gi; may be repeated",
           &a->tmpfs);
  add.Text("--image", "container image, such as registry.example/team/torch:2.3",
           [a](const std::string& v) { a->group.set_image(v); });
  add.Text("--run-as", "user on the nodes, if the server permits it",
           [a](const std::string& v) { a->job.mutable_spec()->set_run_as(v); });
  add.Switch("--preemptible", "may be evicted for other jobs; --preemptible=false: may not",
             [a](bool v) { a->job.mutable_spec()->set_preemptible(v); });
  add.Text("--preempt-mode",
           "how it makes room for a job of higher priority: requeue, or pause, where that suffices",
           [a](const std::string& v) {
             a->job.mutable_spec()->set_preempt_mode(v == "pause" ? v1::PAUSE : v1::REQUEUE);
           })
      ->check(CLI::IsMember({"requeue", "pause"}));
  add.Text("--begin", "earliest start: +10m, now+1hour, 16:00, tomorrow, 2026-12-01T10:00",
           [a](const std::string& v) { a->begin = v; });
}

void AddArrayOption(QuickOptions& add, QuickForm* a) {
  add.Text("--array",
           "a job NAME.INDEX for each index, such as 0-9 or 1,3,5, with BERTH_ARRAY_INDEX in its "
           "environment; 0-99%10: at most 10 of them at a time",
           [a](const std::string& v) { a->array = v; });
}

}  // namespace

void AddQuickOptions(CLI::App& submit, const std::shared_ptr<QuickForm>& form,
                     QuickCommand command) {
  const bool runs = command == QuickCommand::kRun;
  QuickForm* a = form.get();  // kept by the options
  QuickOptions add(submit, form,
                   runs ? "The job" : "Quick form: berth submit [OPTIONS] -- COMMAND...");
  add.Text("--name,-n", "name of the job; default: assigned by the server",
           [a](const std::string& v) { a->job.set_name(v); });
  add.Text("--queue,-q", "queue of the job; default: default",
           [a](const std::string& v) { a->job.mutable_spec()->set_queue(v); })
      ->transform(NameOf("queue"));
  add.Text("--group", "name of the group; default: worker",
           [a](const std::string& v) { a->group.set_name(v); });
  add.Number("--replicas,-r", "tasks; default 1", [a](int32_t v) { a->group.set_replicas(v); })
      ->check(WholeNumber(1));
  add.Number("--min-available", "least number of tasks to start with; default: all",
             [a](int32_t v) { a->group.set_min_available(v); })
      ->check(WholeNumber(1));
  AddResourceOptions(add, a);
  add.List("--env,-e", "environment variable; may be repeated", &a->env)->check(kIsKeyValue);
  add.List("--label,-l", "label; may be repeated", &a->labels)->check(kIsKeyValue);
  add.List("--after", "start after this job has succeeded; may be repeated", &a->after)
      ->transform(NameOf("job"));
  add.Text("--dir,-d", "working directory",
           [a](const std::string& v) { a->group.set_working_dir(v); });
  add.Text(runs ? "--walltime" : "--walltime,-t", "longest run time",
           [a](const std::string& v) { a->walltime = v; })
      ->check(kIsDuration);
  add.Number("--priority,-p", "higher goes first",
             [a](int32_t v) { a->job.mutable_spec()->set_priority(v); });
  add.Text("--priority-class", "priority by name, instead of --priority",
           [a](const std::string& v) { a->job.mutable_spec()->set_priority_class(v); })
      ->transform(NameOf("priority-class"));
  add.Number("--retries", "restarts after failures",
             [a](int32_t v) { a->job.mutable_spec()->set_max_retries(v); })
      ->check(WholeNumber(0));
  add.Flag("--hold", "submit it suspended, until berth job resume",
           [a] { a->job.mutable_spec()->set_suspended(true); });
  add.Flag("--lend-gpus", "while it is paused, others may use its GPUs", [a] {
    a->job.mutable_spec()->mutable_pause()->set_devices(v1::PausePolicy::CHECKPOINT);
  });
  AddPlaceOptions(add, a);
  if (!runs) AddArrayOption(add, a);
}

absl::StatusOr<std::vector<Manifest>> QuickJobs(const QuickForm& form, const Strings& command,
                                                absl::Time now, absl::TimeZone zone) {
  absl::StatusOr<Manifest> job = QuickJob(form, command, now, zone);
  if (!job.ok()) return job.status();
  return std::vector<Manifest>{*std::move(job)};
}

}  // namespace berth
