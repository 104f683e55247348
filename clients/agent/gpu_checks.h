// Derives health from GPU reports: reports in, results of checks out, one per check and device. No
// thread, clock or IO.
//
//   XID 79 at GPU-a -> {gpu-xid, GPU-a, bad, "XID 79: GPU has fallen off the bus"}, in every later
//                      round: nothing shows that a GPU is healthy again except a reset, for which
//                      the agent must release the GPU, that is, be stopped
//   XID 31 at GPU-a -> nothing: a fault of the program
#ifndef BERTH_CLIENTS_AGENT_GPU_CHECKS_H_
#define BERTH_CLIENTS_AGENT_GPU_CHECKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "clients/agent/discovery/gpu_report.h"
#include "clients/agent/health.h"

namespace berth {

inline constexpr char kGpuXidCheck[] = "gpu-xid";
inline constexpr char kGpuEccCheck[] = "gpu-ecc";
inline constexpr char kGpuMemoryCheck[] = "gpu-memory";
inline constexpr char kGpuNvlinkCheck[] = "gpu-nvlink";
inline constexpr char kGpuDriverCheck[] = "gpu-driver";

// The name of an XID for which NVIDIA's catalogue demands a reset of the GPU, a restart of the
// machine or a hardware inspection; null for all others, including those caused by programs.
const char* BadXid(int64_t xid);

class GpuChecks {
 public:
  explicit GpuChecks(const config::v1::Health& config);

  // `now` is from any monotonic clock; rates are between two calls.
  std::vector<CheckResult> Judge(const discovery::GpuReport& report, absl::Duration now);
  // For a driver that did not respond: earlier results stay, and this one is added.
  static CheckResult NoAnswer(const std::string& why);
  // Forgets all XIDs.
  void Forget() {
    xids_.clear();
    last_xids_.clear();
  }

  // The last XID of each GPU, bad or not, by UUID.
  const std::map<std::string, int64_t>& last_xids() const { return last_xids_; }

 private:
  struct Links {
    absl::Duration when;
    int64_t replays, recoveries, crc;
  };

  void NoteXids(const discovery::GpuSample& gpu);
  CheckResult Xid(const discovery::GpuSample& gpu) const;
  CheckResult Memory(const discovery::GpuSample& gpu) const;
  CheckResult Nvlink(const discovery::GpuSample& gpu, absl::Duration now);

  const std::set<int64_t> bad_;
  const std::set<int64_t> ignored_;
  const int64_t max_crc_;                    // per second
  std::map<std::string, std::string> xids_;  // messages about bad XIDs, by UUID
  std::map<std::string, int64_t> last_xids_;
  std::map<std::string, Links> links_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_GPU_CHECKS_H_
