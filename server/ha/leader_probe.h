// LeaderProbe: finds out at once that the leader's process is gone while its machine is not: the
// machine refuses connections then. A machine that does not answer, or a network that drops
// packets, shows nothing here; the leader's silence in etcd shows it a little later.
#ifndef BERTH_SERVER_HA_LEADER_PROBE_H_
#define BERTH_SERVER_HA_LEADER_PROBE_H_

#include <string>

#include "absl/time/time.h"

namespace berth {

// One thread.
class LeaderProbe {
 public:
  LeaderProbe() = default;
  ~LeaderProbe();
  LeaderProbe(const LeaderProbe&) = delete;
  LeaderProbe& operator=(const LeaderProbe&) = delete;

  // Holds a connection to "HOST:PORT", and opens another when it breaks: true if that is refused
  // twice, 50 ms apart. Returns at once otherwise; call it again some milliseconds later.
  bool IsGone(const std::string& address);

 private:
  enum class Result { kConnected, kRefused, kUnknown };
  Result Connect();
  bool Resolve(const std::string& address);
  bool IsOpen() const;
  void Close();

  std::string address_;
  int family_ = 0;
  std::string where_;  // sockaddr
  int socket_ = -1;
  absl::Time next_try_ = absl::InfinitePast();
};

}  // namespace berth

#endif  // BERTH_SERVER_HA_LEADER_PROBE_H_
