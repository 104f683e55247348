// Verbs: what a call may need a right to do. docs/developers/access.md says which call needs which.
#ifndef BERTH_CORE_ACCESS_VERBS_H_
#define BERTH_CORE_ACCESS_VERBS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "absl/strings/string_view.h"

namespace berth {

// Rights over the cluster count only in grants for the cluster; the others count for a queue and
// all queues below it. Stored by name (NameOf), never by number.
enum class Verb : uint8_t {
  // Over the cluster.
  kReadCluster,      // nodes, HyperNodes, totals, what runs where
  kOperateCluster,   // cordon, drain, uncordon; HyperNodes; pause and resume
  kMaintainCluster,  // back up, reload the configuration, finalize an upgrade
  kManageNodes,      // delete nodes; tokens with which agents join; revoke nodes
  kAdmitNodes,       // say of nodes that they may have certificates: what berth-authd asks
  kReadAudit,        // who did what
  // Over a queue and those below it.
  kReadQueue,    // its settings, sums and shares
  kManageQueue,  // create, update, open, close and delete queues below; update, open and close it
  kListJobs,     // what everybody may see of a job: name, queue, state, resources, why it waits
  kReadJob,      // all of a job: command, environment, annotations, messages, history
  kReadLogs,     // what its tasks print
  kSubmitJob,    // also dry runs, plans and estimates
  kSubmitFor,    // in the name of another user
  kChangeJob,    // update, cancel, suspend, resume, delete
  kRequeueJob,   // stop it and start it again
  kExec,         // run commands in its tasks
  kGrant,        // grant and revoke roles, no more than one has oneself
};
inline constexpr size_t kVerbs = 17;

// "job.read". Stable: rules are stored by these names.
absl::string_view NameOf(Verb verb);
std::optional<Verb> FindVerb(absl::string_view name);

// A set of verbs.
class VerbSet {
 public:
  constexpr VerbSet() = default;
  constexpr VerbSet(std::initializer_list<Verb> verbs) {
    for (const Verb verb : verbs) Add(verb);
  }
  constexpr explicit VerbSet(std::span<const Verb> verbs) {
    for (const Verb verb : verbs) Add(verb);
  }

  constexpr void Add(Verb verb) { bits_ |= BitOf(verb); }
  constexpr bool Has(Verb verb) const { return (bits_ & BitOf(verb)) != 0; }
  constexpr bool Contains(VerbSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return __builtin_popcount(bits_); }

  friend constexpr VerbSet operator|(VerbSet a, VerbSet b) { return FromBits(a.bits_ | b.bits_); }
  friend constexpr VerbSet operator&(VerbSet a, VerbSet b) { return FromBits(a.bits_ & b.bits_); }
  friend constexpr VerbSet operator-(VerbSet a, VerbSet b) { return FromBits(a.bits_ & ~b.bits_); }
  constexpr bool operator==(const VerbSet&) const = default;

  // Calls visit(verb) for each, in the order of the enumeration.
  template <class Visit>
  constexpr void ForEach(Visit&& visit) const {
    for (size_t i = 0; i < kVerbs; ++i) {
      const auto verb = static_cast<Verb>(i);
      if (Has(verb)) visit(verb);
    }
  }

 private:
  static constexpr uint32_t BitOf(Verb verb) { return uint32_t{1} << static_cast<uint32_t>(verb); }
  static constexpr VerbSet FromBits(uint32_t bits) {
    VerbSet set;
    set.bits_ = bits;
    return set;
  }

  uint32_t bits_ = 0;
};

inline constexpr VerbSet kAllVerbs = [] {
  VerbSet all;
  for (size_t i = 0; i < kVerbs; ++i) all.Add(static_cast<Verb>(i));
  return all;
}();
inline constexpr VerbSet kClusterVerbs = {Verb::kReadCluster,     Verb::kOperateCluster,
                                          Verb::kMaintainCluster, Verb::kManageNodes,
                                          Verb::kAdmitNodes,      Verb::kReadAudit};
constexpr bool IsOverCluster(Verb verb) { return kClusterVerbs.Has(verb); }

}  // namespace berth

#endif  // BERTH_CORE_ACCESS_VERBS_H_
