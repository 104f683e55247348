// A series: a job that makes jobs. An array makes one for each of its indexes, a schedule one at
// each of its times. The jobs that it makes are its members, jobs like any other: named NAME.INDEX,
// with the series' specification. The series itself has no tasks. docs/developers/series.md
#ifndef BERTH_CORE_MODEL_SERIES_H_
#define BERTH_CORE_MODEL_SERIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/model/ids.h"

namespace berth {

// from, from + step, ..., to.
struct IndexRange {
  int64_t from = 0;
  int64_t to = 0;
  int64_t step = 1;
  int64_t Count() const { return (to - from) / step + 1; }
  bool operator==(const IndexRange&) const = default;
};
// Ascending and disjoint: each range begins above the last index of the one before.
using IndexRanges = std::vector<IndexRange>;

inline constexpr int64_t kMaxIndex = 1'000'000'000;

int64_t CountOf(const IndexRanges& ranges);
// The index at a position; requires 0 <= position < CountOf.
int64_t IndexAt(const IndexRanges& ranges, int64_t position);
// From "7,10-99:10". Nothing, and the reason in `error`, if it does not parse, is not ascending, or
// has an index above `most`.
std::optional<IndexRanges> ParseIndexRanges(absl::string_view text, int64_t most,
                                            std::string* error);
// "0-41,43,50-99". At most about `most` bytes: then "..." follows.
std::string TextOf(const IndexRanges& ranges, size_t most);
// Adds an index to ascending ranges of step 1; no effect if it is there.
void AddIndex(int64_t index, IndexRanges& ranges);

enum class Overlap : uint8_t {
  kAllow,    // members of several times may run side by side
  kForbid,   // a time is skipped while a member has not ended
  kReplace,  // a member that has not ended is cancelled
};

struct SeriesSpec {
  // An array: one range at least. A schedule: none, or those of the array that it makes each time.
  IndexRanges indexes;
  int32_t parallelism = 0;  // of an array: members that have not ended; at least 1
  int32_t max_failed = -1;  // of an array: it fails once more than these failed; -1 = never
  // A schedule.
  std::string cron;       // "0 2 * * *" (core/base/cron.h)
  std::string time_zone;  // of the IANA database; "" = UTC
  Overlap overlap = Overlap::kForbid;
  Duration latest = absl::InfiniteDuration();  // a start that is later than this is skipped
  int32_t history = 3;  // ended members that it keeps, whatever their time to live

  bool IsSchedule() const { return !cron.empty(); }
  bool HasIndexes() const { return !indexes.empty(); }
  bool operator==(const SeriesSpec&) const = default;
};

// What a member belongs to.
struct MemberOf {
  JobId series;
  int64_t index = 0;  // of a schedule: its time, in seconds since 1970
  bool operator==(const MemberOf&) const = default;
};

struct MadeJob {
  int64_t index = 0;
  JobId job;
  bool operator==(const MadeJob&) const = default;
};

struct SeriesStatus {
  int64_t next = 0;                   // of an array: indexes that are submitted
  Time last = absl::InfinitePast();   // of a schedule: its latest time that is past
  Time due = absl::InfiniteFuture();  // of a schedule: its next time
  std::vector<MadeJob> live;          // not yet seen ended; in the order of submission
  std::vector<MadeJob> ended;         // of a schedule: kept as history; in the order of submission
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  int64_t skipped = 0;         // times of a schedule without a member
  IndexRanges failed_indexes;  // of an array; step 1; the first kMaxFailedRanges
  bool operator==(const SeriesStatus&) const = default;
};
inline constexpr size_t kMaxFailedRanges = 4096;

// "sweep.17", or for a schedule, by UTC, "nightly.20261128-020000".
std::string MemberName(const std::string& series, const SeriesSpec& spec, int64_t index);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_SERIES_H_
