// The store to which the tasks of a node belong, and the terms of its servers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "clients/agent/task_book.h"

namespace berth {
namespace {

bool IsSameStore(const StoreMembership& a, const StoreMembership& b) {
  return a.cluster_id == b.cluster_id && a.incarnation == b.incarnation;
}

constexpr char kAdvice[] =
    "; if it is right, stop the agent and run berth-agent --forget-term on this node";

}  // namespace

// Another cluster begins anew. So does a later incarnation of this one: its operator restored it.
absl::Status TaskBook::CheckTerm(const StoreMembership& store) const {
  if (store_.term == 0 || store.cluster_id != store_.cluster_id) return absl::OkStatus();
  if (store.incarnation < store_.incarnation) {
    return absl::FailedPreconditionError(
        absl::StrCat("this server is of incarnation ", store.incarnation,
                     " of the cluster, which was restored as ", store_.incarnation, kAdvice));
  }
  if (store.incarnation > store_.incarnation || store.term >= store_.term) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("this server led in term ", store.term,
                                                    ", and another has led in term ", store_.term,
                                                    kAdvice));
}

absl::Status TaskBook::NoteTerm(uint64_t term) {
  StoreMembership store = store_;
  store.term = term;
  if (absl::Status status = CheckTerm(store); !status.ok()) return status;
  return TakeStore(store);
}

absl::Status TaskBook::Join(Instant now, const StoreMembership& store) {
  if (absl::Status status = TakeStore(store); !status.ok()) return status;
  MarkForeign(now);
  return absl::OkStatus();
}

// Only a term must be durable at once. The rest is saved with the next record: if that is lost, the
// next Welcome repeats it.
absl::Status TaskBook::TakeStore(const StoreMembership& store) {
  if (store == store_) return absl::OkStatus();
  agent::v1::Identity identity = identity_;
  identity.set_cluster_id(store.cluster_id);
  identity.set_incarnation(store.incarnation);
  identity.set_epoch(store.epoch);
  identity.set_node_id(store.node_id);
  identity.set_term(store.term);
  identity.set_version(std::max<uint32_t>(identity.version(), store.incarnation != 0 ? 2 : 1));
  agent::v1::JournalRecord record;
  *record.mutable_identity() = identity;
  const bool terms = store.term != 0 || store_.term != 0;
  if (terms && (store.term != store_.term || !IsSameStore(store, store_))) {
    const absl::Status status = journal_.Append({record});
    if (!status.ok() && !absl::IsResourceExhausted(status)) fatal_ = status;
    if (!status.ok()) return status;
  } else {
    journal_.AppendLater(std::move(record));
  }
  identity_ = std::move(identity);
  store_ = store;
  return absl::OkStatus();
}

uint64_t TaskBook::GreatestJob() const {
  uint64_t greatest = 0;
  for (const auto& [id, entry] : tasks_) {
    const bool mine =
        id.incarnation == store_.incarnation && entry.record.cluster_id() == store_.cluster_id;
    if (mine) greatest = std::max(greatest, id.job_uid);
  }
  return greatest;
}

}  // namespace berth
