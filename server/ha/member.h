// Member: this server's part in a cluster with high availability. It follows the leader's log in
// etcd, takes over when the leader is gone, and while it leads shows that it is alive.
//
//   following --- the leader is silent, resigned or refuses connections ---> campaign
//   campaign  --- one transaction: the term is still the one it saw -------> taking over
//   taking over - reads the rest of the log, cuts what is not complete ----> leading
//   leading   --- another term has begun, or it resigns -------------------> the process ends
//
// No clock is part of any argument for safety: terms decide what may be written
// (ReplicatedLog) and answered (Confirmer). Clocks only decide when to campaign, which is safe at
// any time. docs/developers/high-availability.md has the arguments.
//
// Step and Upkeep are called by one thread each (server/ha/high_availability.h), or by a
// simulation.
#ifndef BERTH_SERVER_HA_MEMBER_H_
#define BERTH_SERVER_HA_MEMBER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/store/v1/replication.pb.h"
#include "server/ha/confirmer.h"
#include "server/loop/leadership.h"
#include "server/loop/loop.h"
#include "storage/replication/replicated_store.h"
#include "support/clock.h"

namespace berth {

struct MemberOptions {
  std::string name, address, version;
  absl::Duration lease = absl::Seconds(1);  // how long a silent leader is left alone
  absl::Duration poll = absl::Milliseconds(10);
  absl::Duration slow = absl::Seconds(5);  // a leader that does nothing for so long resigns
  ReplicatedLogSize bounds = {.bytes = uint64_t{256} << 20, .parts = 20'000};
  uint64_t seed = 0;            // of its attempts' numbers; different for each process
  std::string copy_token = {};  // who presents it may copy this member's store
};

struct MemberHooks {
  std::function<Loop::Followed(const Batch&)> follow;
  // It leads from here on. Once.
  std::function<void(uint64_t term)> lead;
  // It cannot go on: the process ends and starts again, as a standby. Need not return.
  std::function<void(const absl::Status&)> end;
  // Whether the process at the address is certainly gone. Null: never.
  std::function<bool(const std::string& address)> is_gone = nullptr;
  // How long the loop has made no turn, while it leads.
  std::function<absl::Duration()> loop_silence = [] { return absl::ZeroDuration(); };
};

// One member, as the others see it.
struct MemberInfo {
  std::string name;
  store::v1::MemberRecord record;
  bool alive = false;         // it was heard of lately
  bool may_be_alive = false;  // or was seen for the first time lately, perhaps long after its end
};

struct MemberStatus {
  bool leads = false;
  uint64_t term = 0;  // of whoever leads; 0: nobody yet
  std::string leader, leader_address;
  std::string not_eligible;     // why this one cannot lead; empty: it can, or does
  absl::Duration etcd_silence;  // since etcd answered last
  absl::Status etcd;            // its last answer
  uint64_t log_bytes = 0, log_parts = 0;
  uint64_t followed = 0, compared = 0, differences = 0;  // batches
};

class Member final : public Leadership {
 public:
  // All outlive it. The store's state must be loaded where `hooks.follow` goes.
  Member(ReplicatedLog* log, ReplicatedStore* store, Clock* clock, MemberOptions options,
         MemberHooks hooks);

  // One step; call it again after the time that it returns.
  absl::Duration Step() ABSL_LOCKS_EXCLUDED(mutex_);
  // Syncs the store, tells the others of this member, and bounds the log in etcd. About once a
  // second; may wait for the disk.
  void Upkeep() ABSL_LOCKS_EXCLUDED(mutex_);

  // While it leads and has nothing more to write: another is to lead at once. The member named
  // `to`, or any ("").
  absl::Status Resign(const std::string& to) ABSL_LOCKS_EXCLUDED(mutex_, reign_mutex_);
  // While etcd is full: deletes from its log what all servers have, and compacts it.
  absl::Status FreeEtcd() ABSL_LOCKS_EXCLUDED(mutex_);
  // Which member may take over: NOT_FOUND, FAILED_PRECONDITION with the reason.
  absl::Status CheckSuccessor(const std::string& to) const ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t term() const override { return leads_term_.load(); }
  // The term as agents know it: never lower than one before, whichever etcd counted. 0: it does not
  // lead.
  uint64_t agents_term() const {
    const uint64_t term = leads_term_.load();
    return term == 0 ? 0 : earlier_terms_.load() + term;
  }
  uint64_t earlier_terms() const { return earlier_terms_.load(); }
  std::string leader_address() const override ABSL_LOCKS_EXCLUDED(mutex_);
  void Confirm(absl::AnyInvocable<void(absl::Status) &&> effect) override {
    confirmer_.Confirm(std::move(effect));
  }
  Confirmer& confirmer() { return confirmer_; }
  const Confirmer& confirmer() const { return confirmer_; }

  MemberStatus status() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<MemberInfo> members() const ABSL_LOCKS_EXCLUDED(mutex_);
  const MemberOptions& options() const { return options_; }

 private:
  struct Heard {
    uint64_t beat = 0;
    absl::Duration at;   // steady; when the beat was first seen
    bool beats = false;  // more than one was seen
  };

  absl::Duration FollowOnce();
  absl::Duration ReignOnce() ABSL_LOCKS_EXCLUDED(reign_mutex_);
  // Takes over what the view has; false: the step ends here.
  bool CatchUp(const ClusterView& view);
  void Take(const Batch& batch);
  void Watch(const ClusterView& view, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ShouldCampaign(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration Campaign() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration TakeOver(uint64_t term);
  void NoteEtcd(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& why);
  std::string NotEligible() const ABSL_LOCKS_EXCLUDED(mutex_);
  // `synced`: by this server.
  ReplicatedStore::Cut Trimmable(uint64_t synced) const ABSL_LOCKS_EXCLUDED(mutex_);
  void TrimLog(uint64_t term) ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetMembers(uint64_t term) ABSL_LOCKS_EXCLUDED(mutex_);
  void HearMembers() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasSuccessor() const ABSL_LOCKS_EXCLUDED(mutex_);

  ReplicatedLog* const log_;
  ReplicatedStore* const store_;
  Clock* const clock_;
  const MemberOptions options_;
  const MemberHooks hooks_;
  Confirmer confirmer_;
  std::atomic<uint64_t> leads_term_{0}, earlier_terms_{0};
  std::atomic<bool> ended_{false};
  absl::Mutex reign_mutex_;  // while it writes that it is alive, or not any more
  bool resigned_ ABSL_GUARDED_BY(reign_mutex_) = false;

  // Of the thread of Step.
  uint64_t attempt_ = 0;  // of its last campaign; 0: none
  uint64_t attempts_ = 0;
  int64_t seen_revision_ = 0;                          // newest view of etcd
  absl::Duration changed_ = absl::InfiniteDuration();  // steady: the leader last showed life
  absl::Duration last_fast_ = -absl::InfiniteDuration();
  uint64_t beat_ = 0;

  // Of the thread of Upkeep.
  uint64_t upkeeps_ = 0;
  int others_of_name_ = 0;
  std::deque<uint64_t> synced_before_;  // of this store, at the last upkeeps

  mutable absl::Mutex mutex_;
  LeaderView view_ ABSL_GUARDED_BY(mutex_);     // newest
  std::string broken_ ABSL_GUARDED_BY(mutex_);  // its state is not the leader's
  std::string disk_ ABSL_GUARDED_BY(mutex_);    // its store takes nothing now
  bool caught_up_ ABSL_GUARDED_BY(mutex_) = false;
  MemberStatus status_ ABSL_GUARDED_BY(mutex_);
  absl::Duration etcd_heard_ ABSL_GUARDED_BY(mutex_);
  std::vector<MemberInfo> members_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Heard> heard_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_HA_MEMBER_H_
