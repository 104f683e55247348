#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/apply.h"
#include "clients/cli/command.h"
#include "clients/cli/job_wait.h"
#include "support/quantity.h"

namespace berth {
namespace {

using Strings = std::vector<std::string>;

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

struct SubmitArguments {
  Strings files;
  SubmitOptions options;
  Strings ignored;
  bool wait = false;
  std::string timeout;
  // The quick form.
  v1::Job job;
  v1::TaskGroup group;
  int32_t gpus = 0;
  std::string gpu_share;
  std::string gpu_memory;
  std::string cpu;
  std::string memory;
  std::string scratch;
  Strings devices;
  Strings env;
  Strings labels;
  Strings after;
  std::string walltime;
  bool quick = false;  // any of its options was given
};

v1::DeviceRequest* AddDevice(const std::string& kind, int32_t count, v1::TaskGroup* group) {
  v1::DeviceRequest* device = group->mutable_resources()->add_devices();
  device->set_kind(kind);
  device->set_count(count);
  return device;
}

// So many whole ones, or a share of one.
void AddGpus(const SubmitArguments& arguments, v1::TaskGroup* group) {
  const bool share = !arguments.gpu_share.empty(), memory = !arguments.gpu_memory.empty();
  if (arguments.gpus == 0 && !share && !memory) return;
  v1::DeviceRequest* gpus = AddDevice("gpu", arguments.gpus, group);
  if (share) gpus->set_share(std::stod(arguments.gpu_share));
  if (memory) gpus->set_memory_bytes(*ParseBytes(arguments.gpu_memory));
}

// The job that the options and the command describe. The options' checks have run.
Manifest QuickJob(const SubmitArguments& arguments, const Strings& command) {
  Manifest manifest;
  manifest.job = arguments.job;
  v1::JobSpec& spec = *manifest.job.mutable_spec();
  v1::TaskGroup& group = *spec.add_groups();
  group = arguments.group;
  if (group.name().empty()) group.set_name("worker");
  if (group.replicas() == 0) group.set_replicas(1);
  group.mutable_command()->Assign(command.begin(), command.end());
  if (!arguments.cpu.empty())
    group.mutable_resources()->set_cpu_millis(*ParseCpuMillis(arguments.cpu));
  if (!arguments.memory.empty())
    group.mutable_resources()->set_memory_bytes(*ParseBytes(arguments.memory));
  if (!arguments.scratch.empty())
    group.mutable_resources()->set_scratch_bytes(*ParseBytes(arguments.scratch));
  AddGpus(arguments, &group);
  for (const std::string& device : arguments.devices) {
    const auto pair = KeyValueFrom(device);
    AddDevice(pair.first, std::stoi(pair.second), &group);
  }
  for (const std::string& variable : arguments.env) {
    const auto pair = KeyValueFrom(variable);
    v1::EnvVar& added = *group.add_env();
    added.set_name(pair.first);
    added.set_value(pair.second);
  }
  for (const std::string& label : arguments.labels) {
    const auto pair = KeyValueFrom(label);
    (*spec.mutable_labels())[pair.first] = pair.second;
  }
  for (const std::string& job : arguments.after) {
    v1::JobDependency& dependency = *spec.add_dependencies();
    dependency.set_job(job);
    dependency.set_condition(v1::JobDependency::AFTER_OK);
  }
  if (!arguments.walltime.empty()) {
    spec.mutable_walltime()->set_seconds(ParseDuration(arguments.walltime)->seconds);
    spec.mutable_walltime()->set_nanos(ParseDuration(arguments.walltime)->nanos);
  }
  return manifest;
}

ExitCode Usage(Session& session, const std::string& text) {
  session.err() << "berth: " << text << "; see berth submit --help\n";
  return ExitCode::kUsage;
}

ExitCode Submit(Session& session, const SubmitArguments& arguments, const Strings& command) {
  const bool has_files = !arguments.files.empty();
  if (has_files && (arguments.quick || !command.empty())) {
    return Usage(session, "give a manifest, or options and a command, not both");
  }
  if (!has_files && command.empty())
    return Usage(session, "give a manifest, or a command after --");
  std::vector<Manifest> manifests;
  if (has_files) {
    ManifestOptions options;
    options.ignored.insert(arguments.ignored.begin(), arguments.ignored.end());
    auto read = ReadManifestFiles(session, arguments.files, options);
    if (!read.ok()) return FinishReading(session, read.status());
    manifests = *std::move(read);
  } else {
    manifests.push_back(QuickJob(arguments, command));
  }
  Strings names;
  ExitCode code = SubmitManifests(session, manifests, arguments.options, &names);
  if (code != ExitCode::kOk || !arguments.wait) return code;
  session.out().flush();
  const absl::Duration end =
      session.io().environment.clock->Steady() +
      (arguments.timeout.empty() ? absl::InfiniteDuration() : DurationFrom(arguments.timeout));
  for (const std::string& name : names) {
    const ExitCode ended =
        WaitForJob(session, name, end - session.io().environment.clock->Steady());
    if (code == ExitCode::kOk) code = ended;
  }
  return code;
}

// Adds options of the quick form; any of them marks the command line as such.
class QuickOptions {
 public:
  QuickOptions(CLI::App& submit, const std::shared_ptr<SubmitArguments>& arguments)
      : submit_(submit), arguments_(arguments) {}

  template <class Value>
  CLI::Option* Add(const char* option, const char* help, std::function<void(const Value&)> set) {
    return submit_
        .add_option_function<Value>(
            option,
            [arguments = arguments_, set](const Value& value) {
              arguments->quick = true;
              set(value);
            },
            help)
        ->group(kGroup);
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
  void Flag(const char* option, const char* help, std::function<void()> set) {
    const auto marked = [arguments = arguments_, set](int64_t) {
      arguments->quick = true;
      set();
    };
    submit_.add_flag_function(option, marked, help)->group(kGroup);
  }

 private:
  static constexpr char kGroup[] = "Quick form: berth submit [OPTIONS] -- COMMAND...";
  CLI::App& submit_;
  std::shared_ptr<SubmitArguments> arguments_;
};

void AddQuickOptions(CLI::App& submit, const std::shared_ptr<SubmitArguments>& arguments) {
  SubmitArguments* a = arguments.get();  // kept by the options
  QuickOptions add(submit, arguments);
  add.Text("--name,-n", "default: given by the server",
           [a](const std::string& v) { a->job.set_name(v); });
  add.Text("--queue,-q", "default: default",
           [a](const std::string& v) { a->job.mutable_spec()->set_queue(v); });
  add.Text("--group", "name of the group; default: worker",
           [a](const std::string& v) { a->group.set_name(v); });
  add.Number("--replicas,-r", "tasks; default 1", [a](int32_t v) { a->group.set_replicas(v); })
      ->check(CLI::PositiveNumber);
  add.Number("--min-available", "tasks to start with; default: all",
             [a](int32_t v) { a->group.set_min_available(v); })
      ->check(CLI::PositiveNumber);
  add.Number("--gpus,-g", "GPUs of each task", [a](int32_t v) { a->gpus = v; })
      ->check(CLI::PositiveNumber);
  add.Text("--gpu-share", "part of one GPU for each task, as in 0.5",
           [a](const std::string& v) { a->gpu_share = v; })
      ->check(CLI::Range(0.001, 0.999));
  add.Text("--gpu-memory",
           "least memory of each GPU; without --gpus and --gpu-share so much of one",
           [a](const std::string& v) { a->gpu_memory = v; })
      ->check(IsQuantity<ParseBytes>("BYTES"));
  add.List("--device", "devices of each task, as in nic=8; may be repeated", &a->devices)
      ->check(kIsDeviceCount);
  add.Text("--cpu,-c", "cores of each task", [a](const std::string& v) { a->cpu = v; })
      ->check(IsQuantity<ParseCpuMillis>("CORES"));
  add.Text("--memory,-m", "memory of each task", [a](const std::string& v) { a->memory = v; })
      ->check(IsQuantity<ParseBytes>("BYTES"));
  add.Text("--scratch", "local disk of each task", [a](const std::string& v) { a->scratch = v; })
      ->check(IsQuantity<ParseBytes>("BYTES"));
  add.List("--env,-e", "environment; may be repeated", &a->env)->check(kIsKeyValue);
  add.List("--label,-l", "label; may be repeated", &a->labels)->check(kIsKeyValue);
  add.List("--after", "start once this job succeeded; may be repeated", &a->after);
  add.Text("--dir,-d", "working directory",
           [a](const std::string& v) { a->group.set_working_dir(v); });
  add.Text("--walltime,-t", "longest run", [a](const std::string& v) { a->walltime = v; })
      ->check(kIsDuration);
  add.Number("--priority,-p", "higher goes first",
             [a](int32_t v) { a->job.mutable_spec()->set_priority(v); });
  add.Number("--retries", "restarts after failures",
             [a](int32_t v) { a->job.mutable_spec()->set_max_retries(v); })
      ->check(CLI::NonNegativeNumber);
  add.Flag("--hold", "suspended until berth job resume",
           [a] { a->job.mutable_spec()->set_suspended(true); });
}

constexpr char kIgnoreHelp[] =
    "leave out this key of Volcano manifests, with a warning; may be repeated";

void AddSubmit(CLI::App& app, Session& session, const Strings& command) {
  auto arguments = std::make_shared<SubmitArguments>();
  CLI::App* submit =
      AddCommand(app, session, "submit", "submit jobs from manifests, or one from options",
                 [arguments, command](Session& s) { return Submit(s, *arguments, command); });
  submit->add_option("FILE", arguments->files, "manifests; - is standard input");
  submit->add_flag("--dry-run", arguments->options.dry_run,
                   "only ask whether it would be accepted and, of one job, where it would go");
  submit->add_flag("--wait,-w", arguments->wait,
                   "until it has ended; exit code 0 if it succeeded, 10 if not");
  submit
      ->add_option("--timeout", arguments->timeout,
                   "with --wait: give up after this time (exit code 11)")
      ->check(kIsDuration);
  submit->add_option("--request-id", arguments->options.request_id,
                     "the same id never submits twice; default: a random one");
  submit->add_option("--ignore", arguments->ignored, kIgnoreHelp)
      ->delimiter(',')
      ->allow_extra_args(false);
  AddQuickOptions(*submit, arguments);
}

void AddApply(CLI::App& app, Session& session) {
  auto files = std::make_shared<Strings>();
  auto ignored = std::make_shared<Strings>();
  CLI::App* apply = AddCommand(
      app, session, "apply", "make HyperNodes, queues and jobs as manifests say", [=](Session& s) {
        ManifestOptions options;
        options.ignored.insert(ignored->begin(), ignored->end());
        const auto manifests = ReadManifestFiles(s, *files, options);
        return manifests.ok() ? ApplyManifests(s, *manifests)
                              : FinishReading(s, manifests.status());
      });
  apply
      ->add_option("--file,-f", *files,
                   "manifests, one or more documents each; - is standard input")
      ->required();
  apply->add_option("--ignore", *ignored, kIgnoreHelp)->delimiter(',')->allow_extra_args(false);
}

}  // namespace

void AddSubmitCommands(CLI::App& app, Session& session, const Strings& command) {
  AddApply(app, session);
  AddSubmit(app, session, command);
}

}  // namespace berth
