#include "clients/cli/job_list.h"

#include <algorithm>
#include <map>
#include <memory>

#include "clients/cli/human.h"
#include "clients/cli/job_selection.h"
#include "clients/cli/job_view.h"
#include "clients/cli/resource_names.h"
#include "support/number_check.h"

namespace berth {
namespace {

constexpr char kNewestFirst[] = "age";

struct ListArguments {
  JobSelection selection;
  std::string sort = kNewestFirst;
  bool active = false;
  bool reverse = false;
  bool watch = false;
  int64_t limit = 0;  // 0: none
};

using JobBefore = bool (*)(const v1::Job&, const v1::Job&);

absl::Time Started(const v1::Job& job) {
  return job.status().has_start_time() ? TimeFrom(job.status().start_time()) : absl::InfinitePast();
}
absl::Time Ended(const v1::Job& job) {
  return job.status().has_end_time() ? TimeFrom(job.status().end_time()) : absl::InfinitePast();
}

// The orders of --sort. Equal jobs stay newest first.
const std::map<std::string, JobBefore>& Orders() {
  static const auto* orders = new std::map<std::string, JobBefore>{
      {kNewestFirst, [](const v1::Job& a, const v1::Job& b) { return a.uid() > b.uid(); }},
      {"name", [](const v1::Job& a, const v1::Job& b) { return a.name() < b.name(); }},
      {"queue",
       [](const v1::Job& a, const v1::Job& b) { return a.spec().queue() < b.spec().queue(); }},
      {"user",
       [](const v1::Job& a, const v1::Job& b) { return a.spec().user() < b.spec().user(); }},
      {"state",
       [](const v1::Job& a, const v1::Job& b) { return a.status().state() < b.status().state(); }},
      {"priority", [](const v1::Job& a,
                      const v1::Job& b) { return a.spec().priority() > b.spec().priority(); }},
      {"start", [](const v1::Job& a, const v1::Job& b) { return Started(a) > Started(b); }},
      {"end", [](const v1::Job& a, const v1::Job& b) { return Ended(a) > Ended(b); }}};
  return *orders;
}

std::vector<std::string> OrderNames() {
  std::vector<std::string> names;
  for (const auto& order : Orders()) names.push_back(order.first);
  return names;
}

absl::Status ListOnce(Session& session, const ListArguments& arguments) {
  const bool active = arguments.active || !arguments.selection.all;
  const size_t limit = arguments.limit == 0 ? SIZE_MAX : static_cast<size_t>(arguments.limit);
  const bool as_listed = arguments.sort == kNewestFirst && !arguments.reverse;
  absl::StatusOr<std::vector<v1::Job>> jobs =
      FindJobs(session, arguments.selection, active ? Among::kActive : Among::kAny,
               as_listed ? limit : SIZE_MAX);
  if (!jobs.ok()) return jobs.status();
  if (!as_listed) {
    std::stable_sort(jobs->begin(), jobs->end(), Orders().at(arguments.sort));
    if (arguments.reverse) std::reverse(jobs->begin(), jobs->end());
    if (jobs->size() > limit) jobs->resize(limit);
  }
  const Format format = session.options.format;
  const bool table = format == Format::kTable || format == Format::kWide;
  if (jobs->empty() && table && active && arguments.selection.states.empty()) {
    session.err() << "no active jobs; --all also shows jobs that have ended\n";
    return absl::OkStatus();
  }
  Print(session, *jobs, false, JobShape());
  return absl::OkStatus();
}

ExitCode List(Session& session, const ListArguments& arguments) {
  if (!arguments.watch) return session.Finish(ListOnce(session, arguments));
  return WatchList(session, v1::WatchRequest(), [&] { return ListOnce(session, arguments); });
}

}  // namespace

void AddJobList(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* list = AddCommand(noun, session, "list", "list jobs that have not ended, newest first",
                              [arguments](Session& s) { return List(s, *arguments); });
  AddJobFilters(*list, &arguments->selection);
  list->add_option("--name", arguments->selection.names,
                   "only jobs with this name or pattern, such as 'train-*'; may be repeated")
      ->allow_extra_args(false)
      ->transform(NameOf("job"));
  CLI::Option* all = list->add_flag("--all,-A", arguments->selection.all,
                                    "also jobs that have ended; --state selects some of them");
  list->add_flag("--members", arguments->selection.members,
                 "also jobs that arrays and schedules made; --of NAME lists those of one");
  list->add_flag("--active,-a", arguments->active, "only jobs that have not ended: the default")
      ->excludes(all);
  list->add_option("--sort", arguments->sort,
                   "age (newest first), end, name, priority, queue, start, state or user")
      ->check(CLI::IsMember(OrderNames()));
  list->add_flag("--reverse,-r", arguments->reverse, "reverse the order: oldest first");
  list->add_flag("--watch,-w", arguments->watch, "print the list again after every change");
  list->add_option("--limit", arguments->limit, "at most N jobs")->check(WholeNumber<int64_t>(1));
}

}  // namespace berth
