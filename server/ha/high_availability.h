// HighAvailability: what a server of a cluster on etcd has besides a single one, and its threads.
//
//   Open(...)    finds the cluster in etcd and this server's part in it
//   Start(...)   follows, and leads when it is its turn
//   Stop()
#ifndef BERTH_SERVER_HA_HIGH_AVAILABILITY_H_
#define BERTH_SERVER_HA_HIGH_AVAILABILITY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/ha/member.h"
#include "storage/etcd/etcd_admin.h"
#include "storage/etcd/kv.h"
#include "storage/local_store.h"
#include "storage/replication/layout.h"
#include "storage/replication/replicated_log.h"
#include "storage/replication/replicated_store.h"

namespace berth {

// Exit status of a server that cannot go on in its role and is to be started again (EX_TEMPFAIL).
inline constexpr int kExitToRestart = 75;

// Logs the reason and ends the process at once with kExitToRestart: it may do nothing more in its
// role.
void ExitToRestart(const absl::Status& why);

class HighAvailability {
 public:
  // `local` belongs to the generation of `layout` (server/ha/joining.h).
  // `admin` belongs to `kv`; null: there is none.
  HighAvailability(std::unique_ptr<Kv> kv, EtcdAdmin* admin, ReplicationLayout layout,
                   std::unique_ptr<LocalStore> local, MemberOptions options,
                   std::function<void(const absl::Status&)> end = ExitToRestart);
  ~HighAvailability();  // Stop()

  // The store of this server. It must not be destroyed before Stop.
  ReplicatedStore& store() { return *store_; }
  Leadership& leadership() { return member_; }
  Member& member() { return member_; }
  const Member& member() const { return member_; }

  // `follow` and `lead` as in MemberHooks; both on the same thread.
  struct Hooks {
    std::function<Loop::Followed(const Batch&)> follow;
    std::function<void(uint64_t term)> lead;
    std::function<absl::Duration()> loop_silence;
  };
  // A full etcd, in the order that helps: old values go, each member gives its free space back, one
  // after the other and etcd's leader last, then the alarm is taken back. Slow.
  // FAILED_PRECONDITION: this server does not lead.
  struct Repaired {
    std::vector<EtcdMemberStatus> before, after;
  };
  absl::StatusOr<Repaired> RepairEtcd();
  // As of some seconds ago.
  std::vector<EtcdMemberStatus> etcd_members() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Called about once a second, where it may wait for the disk. Before Start.
  void SetNote(std::function<void()> note) { note_ = std::move(note); }
  void Start(Hooks hooks);
  // Ends following and leading. What was written before is complete.
  void Stop();

 private:
  bool Sleep(absl::Duration time) ABSL_LOCKS_EXCLUDED(mutex_);

  void LookAtEtcd() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<Kv> kv_;
  EtcdAdmin* const admin_;
  ReplicatedLog log_;
  const std::unique_ptr<ReplicatedStore> store_;
  Hooks hooks_;
  std::function<void()> note_ = [] {};
  Member member_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<EtcdMemberStatus> etcd_members_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace berth

#endif  // BERTH_SERVER_HA_HIGH_AVAILABILITY_H_
