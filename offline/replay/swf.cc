#include "offline/replay/swf.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace berth::replay {
namespace {

constexpr size_t kFields = 18;
// Numbers of the fields, counted from 1 as in the format.
constexpr size_t kNumber = 1, kSubmit = 2, kRun = 4, kAllocated = 5, kAsked = 8, kRequested = 9,
                 kStatus = 11, kUser = 12, kQueueField = 15;
// Values of kStatus; 1 is a completed job.
constexpr double kFailed = 0, kCancelled = 5;

class SwfReader {
 public:
  SwfReader(const std::string& file, const SwfOptions& options)
      : file_(file), options_(options), processors_(options.processors) {}

  absl::StatusOr<Workload> Read(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      line = absl::StripAsciiWhitespace(line);
      absl::Status status;
      if (absl::ConsumePrefix(&line, ";")) {
        status = Header(line);
      } else if (!line.empty()) {
        status = Record(line);
      }
      if (!status.ok()) return status;
    }
    SortBySubmit(&workload_);
    workload_.processors = processors_;
    return std::move(workload_);
  }

 private:
  absl::Status Wrong(absl::string_view text) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ":", line_, ": ", text));
  }

  absl::Status Header(absl::string_view line) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (parts.size() != 2 || absl::StripAsciiWhitespace(parts[0]) != "MaxProcs") {
      return absl::OkStatus();
    }
    int64_t said = 0;
    if (!absl::SimpleAtoi(parts[1], &said) || said <= 0) return Wrong("MaxProcs is not a number");
    if (options_.processors == 0) processors_ = said;
    return absl::OkStatus();
  }

  absl::Status Record(absl::string_view line) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() != kFields) {
      return Wrong(absl::StrCat("expected ", kFields, " fields, got ", words.size()));
    }
    for (size_t i = 0; i < kFields; ++i) {
      double value = 0;
      if (!absl::SimpleAtod(words[i], &value) || !(value >= -1e15 && value <= 1e15)) {
        return Wrong(absl::StrCat("field ", i + 1, " is not a number: \"", words[i], "\""));
      }
      field_[i + 1] = value;
    }
    if (processors_ <= 0) return Wrong("no MaxProcs before the first record: give --processors");
    if (const char* reason = Reason(); reason != nullptr) {
      ++workload_.left_out[reason];
      return absl::OkStatus();
    }
    workload_.jobs.push_back(Job());
    return absl::OkStatus();
  }

  int64_t Processors() const {
    return static_cast<int64_t>(field_[kAsked] > 0 ? field_[kAsked] : field_[kAllocated]);
  }

  // Why the record cannot be replayed; null if it can.
  const char* Reason() const {
    const auto machine = static_cast<double>(processors_);
    if (field_[kAsked] > machine || field_[kAllocated] > machine) return "larger than the machine";
    if (Processors() <= 0) return "no processors";
    if (field_[kRun] <= 0) return "no run time";
    if (!options_.perfect_times && field_[kRequested] <= 0) return "no requested time";
    if (field_[kSubmit] < 0) return "no submit time";
    return nullptr;
  }

  TraceJob Job() const {
    TraceJob job;
    job.name = NameOfRecord(static_cast<int64_t>(field_[kNumber]));
    job.submit = absl::Seconds(field_[kSubmit]);
    job.run = job.requested = absl::Seconds(field_[kRun]);
    if (field_[kRequested] > 0) {
      job.requested = absl::Seconds(field_[kRequested]);
      CapAtRequestedTime(&job);
    }
    if (options_.perfect_times) job.requested = job.run;
    if (field_[kStatus] == kFailed) job.ended = TraceEnd::kFailed;
    if (field_[kStatus] == kCancelled) job.ended = TraceEnd::kCancelled;
    const int64_t processors = Processors();
    job.tasks = options_.one_task ? 1 : static_cast<int32_t>(processors);
    job.shape.cpu_millis = 1000 * (options_.one_task ? processors : 1);
    if (field_[kUser] > 0) job.user = absl::StrCat("user-", static_cast<int64_t>(field_[kUser]));
    if (field_[kQueueField] > 0) {
      job.queue = absl::StrCat("queue-", static_cast<int64_t>(field_[kQueueField]));
    }
    return job;
  }

  const std::string& file_;
  const SwfOptions options_;
  int64_t processors_;
  int64_t line_ = 0;
  std::array<double, kFields + 1> field_{};
  Workload workload_;
};

}  // namespace

absl::StatusOr<Workload> ReadSwf(absl::string_view text, const std::string& file,
                                 const SwfOptions& options) {
  return SwfReader(file, options).Read(text);
}

}  // namespace berth::replay
