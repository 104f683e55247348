#include "clients/cli/job_selection.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/human.h"
#include "clients/cli/matched.h"
#include "clients/cli/resource_names.h"
#include "support/yaml_proto_scalar.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

const CLI::Validator kIsJobState(
    [](const std::string& text) -> std::string {
      if (FindEnumValue(v1::JobState_descriptor(), text) != nullptr) return "";
      return absl::StrCat("unknown state \"", text,
                          "\"; known: ", absl::StrJoin(EnumTexts(v1::JobState_descriptor()), ", "));
    },
    "STATE");

// The server supports only one name pattern, without [.
bool IsPlainPattern(const Names& names) {
  return names.size() == 1 && names[0].size() <= 128 && names[0].find('[') == std::string::npos;
}

v1::JobFilter FilterOf(const JobSelection& selection, Among among, absl::Time since) {
  v1::JobFilter filter;
  filter.set_queue(selection.queue);
  filter.set_user(selection.user);
  filter.set_owner(selection.owner);
  filter.set_node(selection.node);
  filter.set_series(selection.series);
  // An array of many jobs is one line, unless somebody asks for them.
  const bool by_name =
      std::any_of(selection.names.begin(), selection.names.end(),
                  [](const std::string& name) { return name.find('.') != std::string::npos; });
  filter.set_without_members(!selection.members && selection.series.empty() &&
                             selection.node.empty() && !by_name);
  if (IsPlainPattern(selection.names)) filter.set_name_pattern(selection.names[0]);
  if (since != absl::InfinitePast()) {
    filter.mutable_submitted_after()->set_seconds(absl::ToUnixSeconds(since));
  }
  for (const std::string& state : selection.states) {
    filter.add_states(
        static_cast<v1::JobState>(FindEnumValue(v1::JobState_descriptor(), state)->number()));
  }
  filter.set_ended_only(selection.states.empty() && among == Among::kEnded);
  filter.set_suspended_only(selection.states.empty() && among == Among::kSuspended);
  filter.set_paused_only(selection.paused);
  filter.set_active_only(selection.states.empty() && among == Among::kActive);
  for (const std::string& label : selection.labels) {
    const auto pair = KeyValueFrom(label);
    (*filter.mutable_labels())[pair.first] = pair.second;
  }
  return filter;
}

// Conditions that the filter of the server lacks, or applies more coarsely.
bool Matches(const JobSelection& selection, const v1::Job& job, absl::Time since) {
  if (TimeFrom(job.status().submit_time()) < since) return false;
  return selection.names.empty() || NameMatches(selection.names, job.name());
}

ExitCode Nothing(Session& session, const JobSelection& selection) {
  const bool named = !selection.names.empty();
  session.err() << "berth: no job "
                << (named ? absl::StrCat("matches \"", absl::StrJoin(selection.names, "\", \""),
                                         "\"", selection.has_filter() ? " and the filters" : "")
                          : std::string("matches"))
                << "\n";
  return named ? ExitCode::kNotFound : ExitCode::kOk;
}

// "--all" or "'*'", if nothing else restricts the selection.
std::string SelectAllText(const JobSelection& selection) {
  if (selection.has_filter()) return "";
  if (selection.names.empty()) return selection.all ? "--all" : "";
  const bool every = std::any_of(selection.names.begin(), selection.names.end(), MatchesEveryName);
  return every ? "'*'" : "";
}

bool IsMatching(const JobSelection& selection) {
  return selection.all || selection.has_filter() ||
         std::any_of(selection.names.begin(), selection.names.end(), IsPattern);
}

}  // namespace

void AddJobFilters(CLI::App& command, JobSelection* selection) {
  command.add_option("--queue,-q", selection->queue, "only jobs of this queue")
      ->transform(NameOf("queue"));
  command.add_option("--user,-u", selection->user, "only jobs accounted to this user");
  command.add_option("--owner", selection->owner, "only jobs that this user submitted");
  command.add_option("--node", selection->node, "only jobs with tasks on this node now")
      ->transform(NameOf("node"));
  command
      .add_option("--state,-s", selection->states, "only in these states, such as running,pending")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(kIsJobState);
  command.add_flag("--paused", selection->paused,
                   "only jobs whose tasks are frozen, or about to be");
  command.add_option("--label,-l", selection->labels, "only jobs with this label; may be repeated")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
  command.add_option("--of", selection->series, "only jobs that this array or schedule made")
      ->transform(NameOf("job"));
  command
      .add_option("--since", selection->since, "only jobs submitted within this time, such as 2h")
      ->check(kIsDuration);
}

absl::StatusOr<std::vector<v1::Job>> FindJobs(Session& session, const JobSelection& selection,
                                              Among among, size_t limit) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  const absl::Time since = selection.since.empty() ? absl::InfinitePast()
                                                   : session.Now() - DurationFrom(selection.since);
  v1::ListJobsRequest request;
  *request.mutable_filter() = FilterOf(selection, among, since);
  request.set_order(v1::ListJobsRequest::NEWEST_FIRST);
  std::vector<v1::Job> jobs;
  const absl::Status status = (*client)->List<JobStub, v1::ListJobsRequest, v1::ListJobsResponse>(
      &JobStub::ListJobs, request, [&](const v1::ListJobsResponse& page) {
        for (const v1::Job& job : page.jobs()) {
          if (jobs.size() < limit && Matches(selection, job, since)) jobs.push_back(job);
        }
        return jobs.size() < limit;
      });
  if (!status.ok()) return status;
  return jobs;
}

ExitCode SelectJobs(Session& session, const JobSelection& selection, Among among, Names* chosen) {
  if (!IsMatching(selection)) {
    *chosen = selection.names;
    if (!chosen->empty()) return ExitCode::kOk;
    session.err() << "berth: no jobs selected: give names, 'PATTERN*', --queue, --user, --owner, "
                     "--node, --state, --paused, --label, --since, --of or --all\n";
    return ExitCode::kUsage;
  }
  // Exact names next to patterns are used unchanged, unless a filter restricts them.
  JobSelection patterns = selection;
  if (!selection.has_filter() && !selection.all) {
    patterns.names.clear();
    for (const std::string& name : selection.names) {
      (IsPattern(name) ? patterns.names : *chosen).push_back(name);
    }
  }
  const absl::StatusOr<std::vector<v1::Job>> found = FindJobs(session, patterns, among);
  if (!found.ok()) return session.Finish(found.status());
  std::set<std::string> known(chosen->begin(), chosen->end());
  for (const v1::Job& job : *found) {
    if (known.insert(job.name()).second) chosen->push_back(job.name());
  }
  return chosen->empty() ? Nothing(session, selection) : ExitCode::kOk;
}

ExitCode RunSelected(Session& session, const SelectingVerb& verb, const JobSelection& selection,
                     const std::function<ExitCode(Session&, const Names&)>& run) {
  Names names;
  const ExitCode code = SelectJobs(session, selection, verb.among, &names);
  if (code != ExitCode::kOk || names.empty()) return code;
  if (!verb.changes || !IsMatching(selection)) return run(session, names);
  return RunMatched(session, {verb.name, "job", SelectAllText(selection), selection.yes}, names,
                    run);
}

void AddSelectionNames(CLI::App& command, const SelectingVerb& verb, JobSelection* selection) {
  command.add_option("NAME", selection->names, "names of jobs, or patterns ('train-*')")
      ->transform(NameOf("job"));
  command.add_flag("--all", selection->all,
                   verb.among == Among::kActive      ? "every job that has not ended"
                   : verb.among == Among::kEnded     ? "every job that has ended"
                   : verb.among == Among::kSuspended ? "every job that was suspended or paused"
                                                     : "every job");
  if (verb.changes) command.add_flag("--yes,-y", selection->yes, "do not ask for confirmation");
}

CLI::App* AddSelecting(CLI::App& noun, Session& session, const SelectingVerb& verb,
                       const std::string& description,
                       std::function<ExitCode(Session&, const Names&)> run) {
  auto selection = std::make_shared<JobSelection>();
  CLI::App* command = AddCommand(noun, session, verb.name, description,
                                 [selection, verb, run = std::move(run)](Session& s) {
                                   return RunSelected(s, verb, *selection, run);
                                 });
  AddSelectionNames(*command, verb, selection.get());
  AddJobFilters(*command, selection.get());
  return command;
}

}  // namespace berth
