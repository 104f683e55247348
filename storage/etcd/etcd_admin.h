// EtcdAdmin: what operators need of etcd's members, besides their keys (storage/etcd/kv.h).
#ifndef BERTH_STORAGE_ETCD_ETCD_ADMIN_H_
#define BERTH_STORAGE_ETCD_ETCD_ADMIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace berth {

struct EtcdMemberStatus {
  std::string endpoint;
  absl::Status status;  // of the question; the rest only if it is OK
  std::string version;
  uint64_t member = 0;  // etcd's id of it
  bool leads = false;
  uint64_t raft_term = 0;
  int64_t bytes = 0, bytes_in_use = 0;  // of its database
  std::vector<std::string> errors;      // alarms among them
};

struct EtcdAlarm {
  enum class Kind : uint8_t { kOther, kNoSpace, kCorrupt };
  uint64_t member = 0;
  Kind kind = Kind::kOther;
};

// As etcd's members know each other, which may differ from the endpoints that are configured.
struct EtcdPeer {
  uint64_t member = 0;
  std::string name;  // empty: it has not started yet
  std::vector<std::string> client_urls;
  bool learner = false;
};

// Thread-safe. Errors as for Kv.
class EtcdAdmin {
 public:
  virtual ~EtcdAdmin() = default;
  // One for each endpoint, in order.
  virtual std::vector<EtcdMemberStatus> Members() = 0;
  virtual absl::StatusOr<std::vector<EtcdAlarm>> Alarms() = 0;
  virtual absl::StatusOr<std::vector<EtcdPeer>> Peers() = 0;
  // Takes back the alarm that etcd has no space, on all members.
  virtual absl::Status DisarmNoSpace() = 0;
  // Gives free space of one member's database back to its disk. The member answers nothing
  // meanwhile: seconds for each GiB. NOT_FOUND: no such endpoint.
  virtual absl::Status Defragment(const std::string& endpoint) = 0;
};

}  // namespace berth

#endif  // BERTH_STORAGE_ETCD_ETCD_ADMIN_H_
