// Reloader: reads the configuration again and applies the keys that may change while berthd runs.
//
// An invalid file changes nothing: the current configuration stays in force. Changed keys that need
// a restart are reported separately, at every reload until a restart.
#ifndef BERTH_SERVER_CONFIG_RELOAD_H_
#define BERTH_SERVER_CONFIG_RELOAD_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "berth/config/v1/config.pb.h"

namespace berth {

// One key whose value changed.
struct ConfigChange {
  std::string path;           // "scheduling.backfill.mode"
  std::string before, after;  // for people; "none" if absent
  bool needs_restart = false;
  bool operator==(const ConfigChange&) const = default;
};

// In the order of the message's fields. For completed configurations.
std::vector<ConfigChange> DiffConfig(const config::v1::Server& before,
                                     const config::v1::Server& after);

// `in_force` with the keys of `wanted` that may change live.
config::v1::Server WithLiveKeys(const config::v1::Server& in_force,
                                const config::v1::Server& wanted);

class Reloader {
 public:
  // Reads file and flags and completes them, as at the start.
  using Read = std::function<absl::StatusOr<config::v1::Server>()>;
  // Puts a configuration in force; it differs from the previous one only in live keys.
  using Adopt = std::function<void(const config::v1::Server&)>;

  // `read` may be null: there is nothing to read again.
  Reloader(config::v1::Server in_force, Read read, Adopt adopt);

  // The changes; with `dry_run`, the changes that a reload would make. FAILED_PRECONDITION if
  // nothing changed, with the reason: no file, or an invalid one. Both are logged. Thread-safe;
  // calls wait for each other.
  absl::StatusOr<std::vector<ConfigChange>> Reload(bool dry_run) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Read read_;
  const Adopt adopt_;
  absl::Mutex mutex_;
  config::v1::Server in_force_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_CONFIG_RELOAD_H_
