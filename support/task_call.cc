#include "support/task_call.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

constexpr size_t kMostTaskCallBytes = 1024;
constexpr absl::string_view kTaskMethods[] = {"JobService.GetJob", "JobService.ListTasks",
                                              "JobService.ReadLogs", "JobService.Exec",
                                              "JobService.RequeueJob"};

// SimpleAtoi alone would also take signs and spaces.
template <class Number>
bool ReadDigits(absl::string_view text, Number* out) {
  const bool digits = !text.empty() && text.size() <= 20 &&
                      text.find_first_not_of("0123456789") == absl::string_view::npos;
  return digits && absl::SimpleAtoi(text, out);
}

}  // namespace

std::string EncodeTaskCall(const TaskCall& call) {
  return absl::StrCat(call.job_uid, " ", call.task, " ", call.attempt, " ", call.node_id, " ",
                      call.epoch, " ", call.key, " ", call.node);
}

std::optional<TaskCall> ParseTaskCall(absl::string_view text) {
  if (text.size() > kMostTaskCallBytes) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ' ');
  TaskCall call;
  if (parts.size() != 7 || parts[5].empty() || parts[6].empty()) return std::nullopt;
  if (!ReadDigits(parts[0], &call.job_uid) || !ReadDigits(parts[1], &call.task) ||
      !ReadDigits(parts[2], &call.attempt) || !ReadDigits(parts[3], &call.node_id) ||
      !ReadDigits(parts[4], &call.epoch)) {
    return std::nullopt;
  }
  call.key = std::string(parts[5]);
  call.node = std::string(parts[6]);
  return call;
}

bool IsTaskMethod(absl::string_view method) {
  return std::find(std::begin(kTaskMethods), std::end(kTaskMethods), method) !=
         std::end(kTaskMethods);
}

}  // namespace berth
