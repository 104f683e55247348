#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/apply.h"
#include "clients/cli/command.h"
#include "clients/cli/job_wait.h"
#include "clients/cli/quick_form.h"

namespace berth {
namespace {

using Strings = std::vector<std::string>;

struct SubmitArguments {
  Strings files;
  SubmitOptions options;
  Strings ignored;
  Strings values;  // of parameters of templates, "NAME=VALUE"
  bool wait = false;
  std::string timeout;
  std::shared_ptr<QuickForm> quick = std::make_shared<QuickForm>();
};

ExitCode Usage(Session& session, const std::string& text) {
  session.err() << "berth: " << text << "; see berth submit --help\n";
  return ExitCode::kUsage;
}

ExitCode WaitForAll(Session& session, const SubmitArguments& arguments, const Strings& names) {
  ExitCode code = ExitCode::kOk;
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

// "--array 1000" is an index, and not a number of jobs.
void WarnAboutOneIndex(Session& session, const std::vector<Manifest>& jobs) {
  for (const Manifest& manifest : jobs) {
    int32_t index = 0;
    if (!absl::SimpleAtoi(manifest.job.spec().array().indexes(), &index) || index < 1) continue;
    session.Warn(absl::StrCat("--array ", index, " is the one index ", index, ", as in Slurm; for ",
                              index, " jobs, write --array 0-", index - 1));
  }
}

ExitCode SubmitFiles(Session& session, const SubmitArguments& arguments, const Strings& command) {
  const bool has_files = !arguments.files.empty();
  if (!has_files && !arguments.values.empty())
    return Usage(session, "--set is for templates: give a manifest");
  if (has_files && (arguments.quick->used || !command.empty())) {
    return Usage(session, "give a manifest, or options and a command, not both");
  }
  // An image has a command of its own.
  if (!has_files && command.empty() && arguments.quick->group.image().empty())
    return Usage(session, "give a manifest, or a command after --");
  std::vector<Manifest> manifests;
  if (has_files) {
    ManifestOptions options;
    options.ignored.insert(arguments.ignored.begin(), arguments.ignored.end());
    for (const std::string& value : arguments.values) options.values.insert(KeyValueFrom(value));
    auto read = ReadManifestFiles(session, arguments.files, options);
    if (!read.ok()) return FinishReading(session, read.status());
    manifests = *std::move(read);
  } else {
    auto jobs = QuickJobs(*arguments.quick, command, session.Now(), session.io().time_zone);
    if (!jobs.ok()) return Usage(session, std::string(jobs.status().message()));
    manifests = *std::move(jobs);
    WarnAboutOneIndex(session, manifests);
  }
  SubmitOptions options = arguments.options;
  options.print_manifests = !has_files && session.options.format == Format::kYaml;
  Strings names;
  const ExitCode code = SubmitManifests(session, manifests, options, &names);
  if (code != ExitCode::kOk || !arguments.wait) return code;
  return WaitForAll(session, arguments, names);
}

constexpr char kIgnoreHelp[] =
    "ignore this key of other schedulers' manifests, with a warning; may be repeated";

void AddSubmit(CLI::App& app, Session& session, const Strings& command) {
  auto arguments = std::make_shared<SubmitArguments>();
  CLI::App* submit =
      AddCommand(app, session, "submit", "submit jobs from manifests, or one job from options",
                 [arguments, command](Session& s) { return SubmitFiles(s, *arguments, command); });
  submit->add_option("FILE", arguments->files, "manifests; - is standard input");
  submit->add_flag("--dry-run", arguments->options.dry_run,
                   "only check whether it would be accepted and, for one job, where it would run");
  submit->add_flag("--wait,-w", arguments->wait,
                   "wait until it has ended; exit code 0 if it succeeded, 10 if not");
  submit
      ->add_option("--timeout", arguments->timeout,
                   "with --wait: give up after this time (exit code 11)")
      ->check(kIsDuration);
  submit->add_option("--request-id", arguments->options.request_id,
                     "the same id never submits twice; default: a random id");
  submit->add_option("--on-behalf-of", arguments->options.on_behalf_of,
                     "the user who shall own the jobs; needs job.submitFor");
  submit->add_option("--ignore", arguments->ignored, kIgnoreHelp)
      ->delimiter(',')
      ->allow_extra_args(false);
  submit
      ->add_option("--set", arguments->values,
                   "NAME=VALUE of a parameter of a template; may be repeated")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
  AddQuickOptions(*submit, arguments->quick);
}

void AddApply(CLI::App& app, Session& session) {
  auto files = std::make_shared<Strings>();
  auto ignored = std::make_shared<Strings>();
  CLI::App* apply =
      AddCommand(app, session, "apply",
                 "create or update HyperNodes, queues, priority classes and jobs from manifests",
                 [=](Session& s) {
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
