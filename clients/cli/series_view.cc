#include "clients/cli/series_view.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/human.h"

namespace berth {
namespace {

constexpr size_t kMostIndexText = 60;

std::string ShortIndexes(const std::string& indexes) {
  if (indexes.size() <= kMostIndexText) return indexes;
  return absl::StrCat(indexes.substr(0, indexes.rfind(',', kMostIndexText)), ",...");
}

std::string ArrayText(const v1::Array& array) {
  std::string text = array.indexes().empty()
                         ? absl::StrCat(array.size(), " jobs, 0-", array.size() - 1)
                         : absl::StrCat("indexes ", array.indexes());
  absl::StrAppend(&text, ", at most ", array.parallelism(), " at once");
  if (array.has_max_failed()) absl::StrAppend(&text, ", ", array.max_failed(), " may fail");
  return text;
}

std::string ScheduleText(const v1::Schedule& schedule) {
  std::string text = absl::StrCat(
      schedule.cron(), " ", schedule.time_zone().empty() ? "UTC" : schedule.time_zone(), ", ",
      absl::AsciiStrToLower(v1::Schedule::Overlap_Name(schedule.overlap())), " overlap");
  if (schedule.has_start_deadline()) {
    absl::StrAppend(&text, ", not more than ",
                    HumanDuration(DurationFrom(schedule.start_deadline())), " late");
  }
  return text;
}

}  // namespace

std::string SeriesCount(const v1::Job& job) {
  const v1::SeriesStatus& status = job.status().series();
  if (job.spec().has_schedule()) return absl::StrCat(status.unfinished(), "/-");
  if (!job.spec().has_array()) return "";
  if (!job.status().has_series()) return absl::StrCat("0/", job.spec().array().size());
  return absl::StrCat(status.made(), "/", status.size());
}

std::string SeriesCounts(const v1::SeriesStatus& status) {
  std::vector<std::string> parts;
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", what));
  };
  add(status.unfinished(), "unfinished");
  add(status.succeeded(), "succeeded");
  add(status.failed(), "failed");
  add(status.cancelled(), "cancelled");
  add(status.skipped(), "skipped");
  return absl::StrJoin(parts, ", ");
}

void AddSeries(const v1::Job& job, const Session& session, Page* page) {
  const v1::SeriesStatus& status = job.status().series();
  const absl::TimeZone zone = session.io().time_zone;
  if (job.status().has_member_of()) {
    const v1::SeriesMember& member = job.status().member_of();
    page->Add("Made by",
              member.has_time()
                  ? absl::StrCat(member.series(), " for ", HumanTime(true, member.time(), zone))
                  : absl::StrCat(member.series(), ", index ", member.index()));
  }
  if (job.spec().has_array()) page->Add("Array", ArrayText(job.spec().array()));
  if (job.spec().has_schedule()) page->Add("Schedule", ScheduleText(job.spec().schedule()));
  page->Add("Jobs", SeriesCounts(status));
  page->Add("Failed", ShortIndexes(status.failed_indexes()));
  page->Add("Unfinished", ShortIndexes(status.unfinished_indexes()));
  page->Add("Running jobs", absl::StrJoin(status.unfinished_jobs(), ", "));
  page->Add("Ended jobs", absl::StrJoin(status.ended_jobs(), ", "));
  if (status.has_last_time()) page->Add("Last time", HumanTime(true, status.last_time(), zone));
  if (status.has_next_time()) page->Add("Next time", HumanTime(true, status.next_time(), zone));
}

}  // namespace berth
