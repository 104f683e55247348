// StreamGuard: cuts connections that open streams faster than gRPC frees them.
//
// A client that opens streams and resets them at once makes gRPC 1.51 use about 25 KB for each,
// without bound (CVE-2023-44487); likewise one that never acknowledges the server's settings and so
// is not held to their limit of streams. The guard looks at the process's memory, and while that
// grows at gRPC's own counters of each connection (channelz): one with many resets, or more open
// streams than allowed, is closed, and its address may not connect for a while.
#ifndef BERTH_SERVER_SERVICES_STREAM_GUARD_H_
#define BERTH_SERVER_SERVICES_STREAM_GUARD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace berth {

// gRPC's counters of a connection, since it began.
struct SocketStreams {
  int64_t id = 0;
  std::string address;  // 4 or 16 bytes, in network order
  int port = 0;         // of the client
  int64_t started = 0, succeeded = 0, failed = 0;
};

struct StreamLimits {
  double resets_per_second = 10'000;  // of all connections together
  int64_t open = 10'000;              // of one connection
};

// Which connections to cut, from two looks at the counters. Pure.
class StreamJudge {
 public:
  explicit StreamJudge(const StreamLimits& limits) : limits_(limits) {}

  // `now`: steady time. The first look since Forget only counts.
  std::vector<SocketStreams> Look(const std::vector<SocketStreams>& sockets, absl::Duration now);
  void Forget();

 private:
  const StreamLimits limits_;
  std::map<int64_t, SocketStreams> before_;
  absl::Duration looked_;
  int64_t newest_ = -1;  // id; -1: there was no look
};

class StreamGuard {
 public:
  // Closes the connection, and refuses others of its address for kBan. Thread-safe.
  using Cut = std::function<void(const SocketStreams&)>;

  StreamGuard(const StreamLimits& limits, Cut cut);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

  static constexpr absl::Duration kTick = absl::Milliseconds(100);
  static constexpr absl::Duration kCalm = absl::Seconds(10);  // without growth: it looks away
  static constexpr int64_t kGrowthBytes = int64_t{48} << 20;
  static constexpr absl::Duration kBan = absl::Seconds(10);

 private:
  void Run();
  void Tick();

  StreamJudge judge_;
  const Cut cut_;
  int64_t low_bytes_ = 0;  // least memory since it last looked
  absl::Duration alert_until_;
  absl::Notification stop_;
  std::thread thread_;
};

// Of all connections of this process's gRPC servers. For tests, too.
std::vector<SocketStreams> ReadSocketStreams();

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_STREAM_GUARD_H_
