// Reloader: reads the configuration again and takes over what may change while berthd runs.
//
// A file that is wrong changes nothing: the configuration in force stays. What may not change live
// is told apart, and told again at every reload until a restart.
#ifndef BERTH_SERVER_RELOAD_H_
#define BERTH_SERVER_RELOAD_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "berth/config/v1/config.pb.h"

namespace berth {

// One key that is not what it was.
struct ConfigChange {
  std::string path;           // "scheduling.backfill.mode"
  std::string before, after;  // for people; "none" if absent
  bool needs_restart = false;
  bool operator==(const ConfigChange&) const = default;
};

// In the order of the message's fields. Of completed configurations.
std::vector<ConfigChange> DiffConfig(const config::v1::Server& before,
                                     const config::v1::Server& after);

// `in_force` with the keys of `wanted` that may change live.
config::v1::Server WithLiveKeys(const config::v1::Server& in_force,
                                const config::v1::Server& wanted);

class Reloader {
 public:
  // Reads file and flags and completes them: as at the start.
  using Read = std::function<absl::StatusOr<config::v1::Server>()>;
  // Makes a configuration the one in force; only live keys differ from the one before.
  using Adopt = std::function<void(const config::v1::Server&)>;

  // `read` may be null: there is nothing to read again.
  Reloader(config::v1::Server in_force, Read read, Adopt adopt);

  // What has changed; with `dry_run`, what would. FAILED_PRECONDITION says why nothing has: no
  // file, or a wrong one. Both are logged. Thread-safe; calls wait for each other.
  absl::StatusOr<std::vector<ConfigChange>> Reload(bool dry_run) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Read read_;
  const Adopt adopt_;
  absl::Mutex mutex_;
  config::v1::Server in_force_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_RELOAD_H_
