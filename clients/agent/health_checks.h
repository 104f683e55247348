// Looks at the node, in a thread of its own: a file system that hangs or a slow script holds up
// nobody.
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
#include "clients/agent/gpu_checks.h"
#include "clients/agent/health.h"
#include "clients/discovery/gpu_watch.h"

namespace berth {

// Free bytes of the file system that holds `directory` against `min_free`.
CheckResult CheckDiskSpace(const std::string& directory, int64_t min_free);
// The kernel's estimate of how far its clock is off. Good if nobody disciplines the clock: then
// nothing is known.
CheckResult CheckClock(absl::Duration max_offset);
// What was seen of InfiniBand ports, by "mlx5_0/1".
struct InfinibandSeen {
  std::set<std::string> active;                                  // at any time
  std::map<std::string, std::map<std::string, int64_t>> errors;  // counters by name, at `time`
  absl::Time time = absl::InfinitePast();
};
// More errors a second than this on a port that is in use: cables and transceivers that are clean
// have none for hours.
inline constexpr double kMaxInfinibandErrors = 10;
// Of the ports below `root` (/sys/class/infiniband): those that were ACTIVE and are not; then those
// of ACTIVE ones whose link went down, or that had too many errors, since the last look.
CheckResult CheckInfiniband(const std::string& root, absl::Time now, InfinibandSeen* seen);
// Bad unless it exits with 0 in time; the reason is its first line of output. Cut short when `stop`
// becomes true.
CheckResult CheckCommand(const std::vector<std::string>& argv, absl::Duration timeout,
                         const std::atomic<bool>& stop);

// What one look at the node gave.
struct HealthRound {
  std::vector<CheckResult> results;
  std::optional<discovery::GpuReport> gpus;  // none: there is no driver, or it did not answer
  std::map<std::string, int64_t> last_xids;  // by UUID
};

class HealthChecks {
 public:
  using Tell = absl::AnyInvocable<void(HealthRound)>;
  struct Options {
    std::string state_directory;
    std::string scratch_directory = {};  // empty: none apart
    // Whether a nearly full disk is nobody's fault who could be ended: only then the node is
    // drained for it. Empty: it always is. Called on the thread.
    std::function<bool()> disk_exhausted = {};
    std::string probe = {};         // berth-probe; empty: GPUs are not asked
    std::string nvml_library = {};  // empty: libnvidia-ml.so.1
  };
  // Begins at once; `tell` is called on the thread after each round.
  HealthChecks(const config::v1::Health& config, Options options, Tell tell);
  ~HealthChecks();  // a command that is running is killed

  // The next round comes at once, and looks anew which GPUs there are. `forget`: their XIDs, too.
  void LookAgain(bool forget);
  // Runs `call` while nobody here looks at the GPUs: a driver does not divide one that somebody has
  // open. Waits for a look that is under way. From any thread.
  void WithoutGpuWatch(absl::FunctionRef<void()> call) ABSL_LOCKS_EXCLUDED(gpu_mutex_);

 private:
  void Run();
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
  bool no_driver_ = false;  // known until the next LookAgain
  InfinibandSeen ports_;
  absl::Mutex mutex_;
  std::atomic<bool> stopping_ = false;  // set under the mutex
  bool again_ ABSL_GUARDED_BY(mutex_) = false;
  bool forget_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

inline constexpr char kDiskCheck[] = "disk-space";
inline constexpr char kDiskFullCheck[] = "disk-full";  // the same, at a lower bound
inline constexpr char kClockCheck[] = "clock";
inline constexpr char kInfinibandCheck[] = "infiniband";
inline constexpr char kCommandCheck[] = "command";
inline constexpr char kEpilogCheck[] = "epilog";
inline constexpr char kDevicesCheck[] = "devices";
inline constexpr char kDiscoveryCheck[] = "discovery";

// Whether the node has the taint health/CHECK while the check's condition holds.
bool TaintsNode(const config::v1::Health& config, const std::string& check);
// Bytes that must be free: below them nothing new comes.
int64_t MinFreeBytes(const config::v1::Health& config);
// What a check's condition does by the configuration.
v1::NodeCondition::Effect EffectOfCheck(const config::v1::Health& config, const std::string& check);
// Whether a device that fails it is not given out.
bool TakesDevice(const config::v1::Health& config, const std::string& check);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_HEALTH_CHECKS_H_
