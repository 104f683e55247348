// What a task reports through its NOTIFY_SOCKET, in the protocol of sd_notify(3): datagrams of
// "NAME=value" lines.
//
//   READY=1              it is ready; progress, the first time
//   STATUS=text          for people
//   WATCHDOG=1           progress
//   EXTEND_TIMEOUT_USEC=N   its watchdog is not due before N microseconds from now; the latest
//   counts STOPPING=1           it is about to end X_BERTH_STEP=N       the step it is at;
//   progress, if it is another one X_BERTH_STEP_TIME_US=N  how long a step takes
//   X_BERTH_CHECKPOINT=STEP[,local|peer|shared[,BYTES]]   a complete checkpoint; progress
//
// Other lines are ignored. No IO and no clock. Standard library only; the supervisor and the agent
// link this.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_NOTIFY_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_NOTIFY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth {

inline constexpr size_t kMaxNoticeBytes = 4096;     // of a datagram
inline constexpr size_t kMaxStatusTextBytes = 256;  // of STATUS; the rest is cut off
inline constexpr int64_t kMaxExtensionUs = int64_t{24} * 3600 * 1'000'000;
inline constexpr int64_t kNoticesPerSecond = 10;  // of a task, on average
inline constexpr int64_t kNoticeBurst = 20;       // at once

struct NoticeCheckpoint {
  int64_t step = 0;
  int64_t where = 0;  // berth.v1.Checkpoint.Where
  int64_t bytes = 0;  // 0: not reported
  bool operator==(const NoticeCheckpoint&) const = default;
};

// One datagram. Lines that it does not have, and lines with an invalid value, are absent.
struct Notice {
  bool ready = false;
  bool stopping = false;
  bool watchdog = false;
  std::optional<std::string> status;  // valid UTF-8 without control characters
  std::optional<int64_t> extend_us;
  std::optional<int64_t> step;
  std::optional<int64_t> step_time_us;
  std::optional<NoticeCheckpoint> checkpoint;
  bool invalid = false;  // one of the lines above had an invalid value, or it has a NUL inside
  bool operator==(const Notice&) const = default;
};
Notice ParseNotice(std::string_view datagram);

// The sum of all datagrams of a task. Times are nanoseconds of CLOCK_BOOTTIME.
struct Notices {
  bool ready = false;
  bool stopping = false;
  std::string status;
  std::optional<int64_t> step;
  int64_t step_time_us = 0;  // 0: not reported
  std::optional<NoticeCheckpoint> checkpoint;
  int64_t progress_ns = 0;    // when it last made progress; 0: not yet
  int64_t not_before_ns = 0;  // its watchdog is not due before; 0: not extended
  int64_t dropped = 0;        // datagrams beyond a limit, or with an invalid value
  bool operator==(const Notices&) const = default;
};
void AddNotice(const Notice& notice, int64_t now_ns, Notices* sum);

// As a file: NUL-terminated "key=value" fields. Unknown fields are skipped.
std::string EncodeNotices(const Notices& notices);
bool DecodeNotices(std::string_view text, Notices* notices);

// Lets kNoticesPerSecond through, and kNoticeBurst at once.
class NoticeLimit {
 public:
  bool Take(int64_t now_ns);

 private:
  // Each datagram that passes moves this time forward; it may be at most a burst ahead of now.
  int64_t used_until_ns_ = 0;
};

// At most `most` bytes of the text, cut between characters. Control characters, and bytes that are
// not UTF-8, become '?'.
std::string PrintableText(std::string_view text, size_t most);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_NOTIFY_H_
