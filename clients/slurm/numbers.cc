#include "clients/slurm/numbers.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr int64_t kMostIndexes = 100'000;
constexpr char kGivenName[] = "job-";

absl::Status Unreadable(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("Invalid job id specified: ", text));
}

bool ParseDigits(absl::string_view text, int64_t* number) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(text, number);
}

// "1-3,7" -> 1 2 3 7.
bool ParseIndexes(absl::string_view text, std::vector<int64_t>* indexes) {
  absl::ConsumePrefix(&text, "[");
  absl::ConsumeSuffix(&text, "]");
  text = text.substr(0, text.find('%'));
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int64_t first = 0, last = 0;
    if (!ParseDigits(ends.first, &first)) return false;
    last = first;
    if (!ends.second.empty() && !ParseDigits(ends.second, &last)) return false;
    if (last < first || last - first >= kMostIndexes) return false;
    for (int64_t i = first; i <= last; ++i) indexes->push_back(i);
    if (static_cast<int64_t>(indexes->size()) > kMostIndexes) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<JobNumber>> ParseJobNumbers(absl::string_view text, bool steps) {
  const absl::string_view whole = text;
  if (steps) text = text.substr(0, text.find('.'));
  text = text.substr(0, text.find('+'));
  const size_t bar = text.find('_');
  int64_t uid = 0;
  if (!ParseDigits(text.substr(0, bar), &uid) || uid == 0) return Unreadable(whole);
  const auto number = static_cast<uint64_t>(uid);
  if (bar == absl::string_view::npos) return std::vector<JobNumber>{{.uid = number, .index = {}}};
  std::vector<int64_t> indexes;
  if (!ParseIndexes(text.substr(bar + 1), &indexes)) return Unreadable(whole);
  std::vector<JobNumber> numbers;
  for (const int64_t index : indexes) numbers.push_back({number, index});
  return numbers;
}

absl::StatusOr<v1::Job> JobByNumber(Client& client, const JobNumber& number) {
  v1::GetJobRequest request;
  if (number.index.has_value()) {
    request.set_name(absl::StrCat(kGivenName, number.uid, ".", *number.index));
  } else {
    request.set_uid(number.uid);
  }
  absl::StatusOr<v1::Job> job = client.Call(&v1::JobService::StubInterface::GetJob, request);
  if (!absl::IsNotFound(job.status())) return job;
  return absl::NotFoundError(
      absl::StrCat("Invalid job id specified: there is no job ", number.uid,
                   number.index.has_value() ? absl::StrCat("_", *number.index) : std::string()));
}

uint64_t ArrayOf(const v1::Job& job) {
  int64_t uid = 0;
  absl::string_view name = job.status().member_of().series();
  const bool given = absl::ConsumePrefix(&name, kGivenName) && ParseDigits(name, &uid);
  return given ? static_cast<uint64_t>(uid) : 0;
}

std::string NumberOf(const v1::Job& job) {
  const uint64_t array = ArrayOf(job);
  const bool member = array != 0 && !job.status().member_of().has_time();
  return member ? absl::StrCat(array, "_", job.status().member_of().index())
                : absl::StrCat(job.uid());
}

}  // namespace berth
