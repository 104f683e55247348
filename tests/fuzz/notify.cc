// Datagrams of a task to its NOTIFY_SOCKET, separated by NUL bytes, and the file that a supervisor
// writes about them.
#include "clients/agent/supervisor/notify.h"

#include <algorithm>
#include <string>

#include "core/base/check.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

constexpr int64_t kStepNs = 30'000'000;  // between two datagrams: more than the limit lets through

void CheckText(const std::string& text) {
  BERTH_CHECK(text.size() <= kMaxStatusTextBytes);
  BERTH_CHECK(PrintableText(text, kMaxStatusTextBytes) == text);
  for (const char c : text) BERTH_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

void CheckNotices(const Notices& notices, int64_t now_ns) {
  CheckText(notices.status);
  BERTH_CHECK(notices.step.value_or(0) >= 0 && notices.step_time_us >= 0);
  BERTH_CHECK(notices.progress_ns <= now_ns);
  BERTH_CHECK(notices.not_before_ns <= now_ns + kMaxExtensionUs * 1000);
  const NoticeCheckpoint checkpoint = notices.checkpoint.value_or(NoticeCheckpoint());
  BERTH_CHECK(checkpoint.step >= 0 && checkpoint.bytes >= 0);
  BERTH_CHECK(checkpoint.where >= 0 && checkpoint.where <= 3);
  Notices again;
  BERTH_CHECK(DecodeNotices(EncodeNotices(notices), &again));
  BERTH_CHECK(again == notices);
}

}  // namespace

void FuzzOne(absl::string_view input) {
  const std::string_view text(input.data(), input.size());
  Notices sum;
  if (DecodeNotices(text, &sum)) CheckText(sum.status);
  sum = {};
  NoticeLimit limit;
  int64_t now_ns = 1, passed = 0, all = 0;
  AddNotice(ParseNotice(text), now_ns, &sum);  // with the NUL bytes
  CheckNotices(sum, now_ns);
  for (size_t at = 0; at <= text.size(); ++all) {
    const size_t end = std::min(text.find('\0', at), text.size());
    now_ns += kStepNs;
    if (limit.Take(now_ns)) {
      ++passed;
      AddNotice(ParseNotice(text.substr(at, end - at)), now_ns, &sum);
    }
    at = end + 1;
  }
  CheckNotices(sum, now_ns);
  BERTH_CHECK(passed <= kNoticeBurst + all * kStepNs * kNoticesPerSecond / 1'000'000'000 + 1);
}

}  // namespace berth::fuzz
