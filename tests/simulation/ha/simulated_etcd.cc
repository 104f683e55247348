#include "tests/simulation/ha/simulated_etcd.h"

#include <algorithm>
#include <utility>

namespace berth::simulation {
namespace {

constexpr size_t kKeptChanges = 2000;

bool Writes(const KvTxn& txn) {
  const auto writes = [](const KvOp& op) { return op.kind != KvOp::Kind::kGet; };
  return std::any_of(txn.then.begin(), txn.then.end(), writes) ||
         std::any_of(txn.otherwise.begin(), txn.otherwise.end(), writes);
}

bool Puts(const KvTxn& txn) {
  return std::any_of(txn.then.begin(), txn.then.end(),
                     [](const KvOp& op) { return op.kind == KvOp::Kind::kPut; });
}

bool Holds(const std::map<std::string, KvItem>& items, const KvCompare& compare) {
  const auto found = items.find(compare.key);
  if (found == items.end()) return compare.revision == 0;
  const KvItem& item = found->second;
  return compare.revision == (compare.field == KvCompare::Field::kCreateRevision
                                  ? item.create_revision
                                  : item.mod_revision);
}

}  // namespace

class SimulatedEtcd::ClientKv final : public Kv {
 public:
  ClientKv(SimulatedEtcd* etcd, Client* client) : etcd_(*etcd), client_(*client) {}

  absl::StatusOr<KvResult> Commit(const KvTxn& txn) override {
    client_.between();
    if (client_.cut) return absl::UnavailableError("simulated: cut off");
    Dice& dice = etcd_.dice_;
    const EtcdFaults& faults = client_.faults;
    if (dice.Chance(faults.lost_before)) return absl::UnavailableError("simulated: lost");
    if (!Writes(txn)) {
      if (dice.Chance(faults.lost_after)) return absl::UnavailableError("simulated: lost");
      return txn.stale ? ReadStale(txn) : Run(etcd_.items_, etcd_.revision_, txn);
    }
    if (etcd_.full && Puts(txn)) return absl::ResourceExhaustedError("simulated: no space");
    if (dice.Chance(faults.later)) {
      etcd_.late_.push_back(txn);
      return absl::DeadlineExceededError("simulated: late");
    }
    KvResult result = etcd_.Apply(txn);
    if (dice.Chance(faults.lost_after)) return absl::UnavailableError("simulated: lost");
    return result;
  }

  std::vector<absl::StatusOr<KvResult>> CommitAll(absl::Span<const KvTxn> txns,
                                                  size_t in_flight) override {
    std::vector<absl::StatusOr<KvResult>> results(txns.size(), absl::UnavailableError("not sent"));
    std::vector<size_t> open;
    size_t next = 0;
    bool failed = false;
    while (!open.empty() || (next < txns.size() && !failed)) {
      while (next < txns.size() && open.size() < in_flight && !failed) open.push_back(next++);
      const size_t pick = etcd_.dice_.Below(open.size());
      const size_t index = open[pick];
      open.erase(open.begin() + static_cast<ptrdiff_t>(pick));
      results[index] = Commit(txns[index]);
      failed |= !results[index].ok();
    }
    return results;
  }

  absl::Status Compact(int64_t) override {
    return client_.cut ? absl::UnavailableError("simulated: cut off") : absl::OkStatus();
  }

 private:
  // As of some revisions ago, but never older than before.
  KvResult ReadStale(const KvTxn& txn) {
    const auto behind = static_cast<int64_t>(etcd_.dice_.Below(client_.faults.behind + 1));
    const int64_t oldest = etcd_.changes_.empty() ? 0 : etcd_.changes_.front().revision;
    if (revision_ == 0 || revision_ < oldest) {
      items_ = etcd_.items_;
      revision_ = etcd_.revision_;
    }
    const int64_t until = std::max(revision_, etcd_.revision_ - behind);
    for (const Change& change : etcd_.changes_) {
      if (change.revision <= revision_ || change.revision > until) continue;
      if (change.after.has_value()) {
        items_[change.key] = *change.after;
      } else {
        items_.erase(change.key);
      }
    }
    revision_ = until;
    return Run(items_, revision_, txn);
  }

  SimulatedEtcd& etcd_;
  Client& client_;
  Items items_;  // what it has seen
  int64_t revision_ = 0;
};

std::unique_ptr<Kv> SimulatedEtcd::Connect(Client* client) {
  return std::make_unique<ClientKv>(this, client);
}

const KvItem* SimulatedEtcd::Find(const std::string& key) const {
  const auto found = items_.find(key);
  return found == items_.end() ? nullptr : &found->second;
}

KvResult SimulatedEtcd::Run(const Items& items, int64_t revision, const KvTxn& txn) {
  KvResult result{.held = std::all_of(txn.compares.begin(), txn.compares.end(),
                                      [&](const KvCompare& c) { return Holds(items, c); }),
                  .revision = revision};
  for (const KvOp& op : result.held ? txn.then : txn.otherwise) {
    std::vector<KvItem>& out = result.items.emplace_back();
    if (op.kind != KvOp::Kind::kGet) continue;
    const std::string end = op.end.empty() ? op.key + '\0' : op.end;
    for (auto item = items.lower_bound(op.key); item != items.end() && item->first < end; ++item) {
      if (op.limit != 0 && static_cast<int64_t>(out.size()) == op.limit) break;
      out.push_back(item->second);
    }
  }
  return result;
}

KvResult SimulatedEtcd::Apply(const KvTxn& txn) {
  KvResult result = Run(items_, revision_, txn);
  const std::vector<KvOp>& ops = result.held ? txn.then : txn.otherwise;
  const bool writes = std::any_of(ops.begin(), ops.end(),
                                  [](const KvOp& op) { return op.kind != KvOp::Kind::kGet; });
  if (!writes) return result;
  result.revision = ++revision_;
  for (const KvOp& op : ops) Write(op, revision_);
  while (changes_.size() > kKeptChanges) changes_.pop_front();
  return result;
}

void SimulatedEtcd::Write(const KvOp& op, int64_t revision) {
  if (op.kind == KvOp::Kind::kPut) {
    const auto found = items_.find(op.key);
    KvItem item{.key = op.key,
                .value = op.value,
                .create_revision = found == items_.end() ? revision : found->second.create_revision,
                .mod_revision = revision};
    return Set(op.key, std::move(item), revision);
  }
  if (op.kind != KvOp::Kind::kDelete) return;
  const std::string end = op.end.empty() ? op.key + '\0' : op.end;
  std::vector<std::string> keys;
  for (auto item = items_.lower_bound(op.key); item != items_.end() && item->first < end; ++item) {
    keys.push_back(item->first);
  }
  for (const std::string& key : keys) Set(key, std::nullopt, revision);
}

void SimulatedEtcd::Set(const std::string& key, std::optional<KvItem> item, int64_t revision) {
  const auto found = items_.find(key);
  const KvItem* before = found == items_.end() ? nullptr : &found->second;
  if (on_write != nullptr) on_write(key, before, item.has_value() ? &*item : nullptr);
  if (before != nullptr) bytes_ -= key.size() + before->value.size();
  changes_.push_back({.revision = revision, .key = key, .after = item});
  if (item.has_value()) {
    bytes_ += key.size() + item->value.size();
    items_[key] = *std::move(item);
  } else if (found != items_.end()) {
    items_.erase(found);
  }
}

void SimulatedEtcd::DeliverLate() {
  std::vector<KvTxn> late = std::exchange(late_, {});
  while (!late.empty()) {
    const size_t pick = dice_.Below(late.size());
    if (dice_.Chance(0.7) && !full) Apply(late[pick]);
    late.erase(late.begin() + static_cast<ptrdiff_t>(pick));
  }
}

}  // namespace berth::simulation
