#include "server/validation/series.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/cron.h"
#include "core/model/series.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

constexpr size_t kMaxTextBytes = 256;
constexpr size_t kMaxSuffixBytes = 20;
constexpr int kMaxSuffixes =
    2;  // of the time of a schedule, and of the index of the array that it made

void CheckIndexes(const FieldPath& path, const v1::Array& array, const config::v1::Limits& limits,
                  Findings& findings) {
  const FieldPath indexes(path, "indexes");
  if (array.indexes().size() > kMaxIndexesBytes) {
    return findings.Invalid(indexes, absl::StrCat("at most ", kMaxIndexesBytes, " bytes, has ",
                                                  array.indexes().size()));
  }
  std::string error;
  const std::optional<IndexRanges> ranges = ParseIndexRanges(array.indexes(), kMaxIndex, &error);
  if (!ranges.has_value()) return findings.Invalid(indexes, error);
  if (CountOf(*ranges) > limits.array_size()) {
    findings.Invalid(indexes, absl::StrCat("at most ", limits.array_size(),
                                           " indexes (limits.array_size), has ", CountOf(*ranges)));
  }
}

void CheckArray(const FieldPath& path, const v1::Array& array, const config::v1::Limits& limits,
                Findings& findings) {
  if (array.indexes().empty()) {
    if (array.size() < 1 || array.size() > limits.array_size()) {
      findings.Invalid({path, "size"}, absl::StrCat("must be 1..", limits.array_size(),
                                                    " (limits.array_size), is ", array.size()));
    }
  } else {
    if (array.size() != 0) findings.Invalid({path, "size"}, "not together with indexes");
    CheckIndexes(path, array, limits, findings);
  }
  if (array.parallelism() < 0 || array.parallelism() > limits.array_parallelism()) {
    findings.Invalid({path, "parallelism"},
                     absl::StrCat("must be 1..", limits.array_parallelism(),
                                  " (limits.array_parallelism), is ", array.parallelism()));
  }
  if (array.has_max_failed()) {
    CheckRange({path, "max_failed"}, array.max_failed(), 0, INT32_MAX, findings);
  }
}

void CheckSchedule(const FieldPath& path, const v1::Schedule& schedule, Findings& findings) {
  std::string error;
  if (schedule.cron().empty()) {
    findings.Invalid({path, "cron"}, "required, as in \"30 2 * * *\"");
  } else if (schedule.cron().size() > kMaxTextBytes) {
    findings.Invalid({path, "cron"}, absl::StrCat("at most ", kMaxTextBytes, " bytes"));
  } else if (!Cron::Parse(schedule.cron(), &error).has_value()) {
    findings.Invalid({path, "cron"}, error);
  }
  const std::string& zone = schedule.time_zone();
  const bool plain =
      zone.size() <= kMaxTextBytes && std::all_of(zone.begin(), zone.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '_' ||
               c == '-' || c == '+';
      });
  if (!plain || (!zone.empty() && zone[0] == '/') || !FindTimeZone(zone).has_value()) {
    findings.Invalid({path, "time_zone"},
                     absl::StrCat("is no time zone that this machine knows, as in "
                                  "\"Europe/Berlin\": ",
                                  Quoted(zone)));
  }
  CheckEnum({path, "overlap"}, schedule.overlap(), findings);
  if (schedule.has_start_deadline()) {
    CheckDuration({path, "start_deadline"}, schedule.start_deadline(), absl::Seconds(1),
                  kMaxDuration, findings);
  }
  if (schedule.has_history()) {
    CheckRange({path, "history"}, schedule.history(), 0, kMaxHistory, findings);
  }
}

}  // namespace

void CheckSeries(const FieldPath& path, const v1::JobSpec& spec, const config::v1::Limits& limits,
                 Findings& findings) {
  if (spec.has_array()) CheckArray({path, "array"}, spec.array(), limits, findings);
  if (spec.has_schedule()) {
    CheckSchedule({path, "schedule"}, spec.schedule(), findings);
    if (spec.has_deadline()) {
      findings.Invalid({path, "deadline"}, "not in a schedule, whose jobs would all have the same");
    }
  }
}

void CheckJobReference(const FieldPath& path, absl::string_view name, Findings& findings) {
  for (int depth = 0; depth < kMaxSuffixes; ++depth) {
    const size_t dot = name.rfind('.');
    if (dot == absl::string_view::npos) break;
    const absl::string_view suffix = name.substr(dot + 1);
    const bool number = !suffix.empty() && suffix.size() <= kMaxSuffixBytes &&
                        suffix.find_first_not_of("0123456789-") == absl::string_view::npos;
    if (!number) break;
    name = name.substr(0, dot);
  }
  CheckDnsLabel(path, name, findings);
}

}  // namespace berth
