// Checks the node's health in a separate thread, so that a file system that hangs or a slow script
// blocks nothing else.
#ifndef BERTH_CLIENTS_AGENT_HEALTH_CHECKS_H_
#define BERTH_CLIENTS_AGENT_HEALTH_CHECKS_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "clients/agent/discovery/gpu_watch.h"
#include "clients/agent/gpu_checks.h"
#include "clients/agent/health.h"

namespace berth {

// Compares the free bytes of the file system that contains `directory` with `min_free`.
CheckResult CheckDiskSpace(const std::string& directory, int64_t min_free);
// Checks the kernel's estimate of the clock error. Good if the clock is not synchronized: then the
// error is unknown.
CheckResult CheckClock(absl::Duration max_offset);
// State of InfiniBand ports across checks, by "mlx5_0/1".
struct InfinibandSeen {
  std::set<std::string> active;                                  // ever
  std::map<std::string, std::map<std::string, int64_t>> errors;  // counters by name, at `time`
  absl::Time time = absl::InfinitePast();
};
// More errors per second than this on a port in use are bad: clean cables and transceivers have
// none for hours.
inline constexpr double kMaxInfinibandErrors = 10;
// Checks the ports below `root` (/sys/class/infiniband): bad if a port is no longer ACTIVE, or if
// the link of an ACTIVE port went down or had too many errors since the last check.
CheckResult CheckInfiniband(const std::string& root, absl::Time now, InfinibandSeen* seen);
// Bad unless the command exits with 0 in time; the reason is its first line of output. Returns
// early when `stop` becomes true.
CheckResult CheckCommand(const std::vector<std::string>& argv, absl::Duration timeout,
                         const std::atomic<bool>& stop);

// The results of one round.
struct HealthRound {
  uint64_t number = 0;  // 1, 2, 3, ... of these HealthChecks
  std::vector<CheckResult> results;
  std::optional<discovery::GpuReport> gpus;  // none: no driver, or no response
  std::map<std::string, int64_t> last_xids;  // by UUID
};

class HealthChecks {
 public:
  using Tell = absl::AnyInvocable<void(HealthRound)>;
  struct Options {
    std::string state_directory;
    std::string scratch_directory = {};  // empty: no separate one
    // Whether no task can be ended to free a nearly full disk: only then is the node drained for
    // it. Empty: always. Called on the thread.
    std::function<bool()> disk_exhausted = {};
    std::string probe = {};         // berth-probe; empty: GPUs are not checked
    std::string nvml_library = {};  // empty: libnvidia-ml.so.1
  };
  // Starts at once; calls `tell` on the thread after each round.
  HealthChecks(const config::v1::Health& config, Options options, Tell tell);
  ~HealthChecks();  // kills a running command

  // Starts the next round at once and lists the GPUs again. `forget`: also forgets their XIDs.
  void LookAgain(bool forget);
  // Queries the GPUs soon, besides the regular rounds. Returns the number of the first round that
  // begins after this call.
  uint64_t LookAtGpus();
  // Runs `call` while this object has no GPU open: a driver does not divide an open GPU. Waits for
  // a check in progress. From any thread.
  void WithoutGpuWatch(absl::FunctionRef<void()> call) ABSL_LOCKS_EXCLUDED(gpu_mutex_);

 private:
  void Run();
  bool AwaitNext(absl::Duration* next_full);
  HealthRound Round();
  void AskGpus(HealthRound* round);
  CheckResult CheckDisks(int64_t min_free) const;
  void LookAtDisk(std::vector<CheckResult>* results) const;

  const config::v1::Health config_;
  const Options options_;
  Tell tell_;
  GpuChecks gpu_checks_;
  absl::Mutex gpu_mutex_;
  discovery::GpuWatch gpu_watch_ ABSL_GUARDED_BY(gpu_mutex_);
  bool no_driver_ = false;  // valid until the next LookAgain
  InfinibandSeen ports_;
  absl::Mutex mutex_;
  std::atomic<bool> stopping_ = false;  // set under the mutex
  bool again_ ABSL_GUARDED_BY(mutex_) = false;
  bool forget_ ABSL_GUARDED_BY(mutex_) = false;
  bool gpus_ ABSL_GUARDED_BY(mutex_) = false;   // they are to be queried
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // rounds
  std::thread thread_;
};

inline constexpr char kDiskCheck[] = "disk-space";
inline constexpr char kDiskFullCheck[] = "disk-full";  // the same, with a lower limit
inline constexpr char kClockCheck[] = "clock";
inline constexpr char kInfinibandCheck[] = "infiniband";
inline constexpr char kCommandCheck[] = "command";
inline constexpr char kEpilogCheck[] = "epilog";
inline constexpr char kDevicesCheck[] = "devices";
inline constexpr char kDiscoveryCheck[] = "discovery";

// Whether the node has the taint health/CHECK while the check's condition holds.
bool TaintsNode(const config::v1::Health& config, const std::string& check);
// Bytes that must be free: with less, the node takes no new tasks.
int64_t MinFreeBytes(const config::v1::Health& config);
// The configured effect of a check's condition.
v1::NodeCondition::Effect EffectOfCheck(const config::v1::Health& config, const std::string& check);
// Whether a device that fails the check is not schedulable.
bool TakesDevice(const config::v1::Health& config, const std::string& check);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_HEALTH_CHECKS_H_
