#include "tests/simulation/etcd/simulated_etcd.h"

#include <algorithm>
#include <utility>

namespace berth::simulation {
namespace {

constexpr size_t kKeptChanges = 2000;

constexpr size_t kMaxRequest = size_t{3} << 19;

bool IsPut(const KvOp& op) { return op.kind == KvOp::Kind::kPut; }

bool Puts(const KvTxn& txn) {
  return std::any_of(txn.then.begin(), txn.then.end(), IsPut) ||
         std::any_of(txn.otherwise.begin(), txn.otherwise.end(), IsPut);
}

size_t PutBytes(const std::vector<KvOp>& ops) {
  size_t bytes = 0;
  for (const KvOp& op : ops) bytes += IsPut(op) ? op.key.size() + op.value.size() : 0;
  return bytes;
}

std::string EndOf(const KvOp& op) { return op.end.empty() ? op.key + '\0' : op.end; }

// etcd lets a branch write each key once.
bool WritesTwice(const std::vector<KvOp>& ops) {
  for (const KvOp& put : ops) {
    if (!IsPut(put)) continue;
    for (const KvOp& other : ops) {
      const bool again = IsPut(other) && &other != &put && other.key == put.key;
      const bool deletes =
          other.kind == KvOp::Kind::kDelete && put.key >= other.key && put.key < EndOf(other);
      if (again || deletes) return true;
    }
  }
  return false;
}

absl::Status CheckLikeEtcd(const KvTxn& txn) {
  if (absl::Status valid = CheckTxn(txn); !valid.ok()) return valid;
  if (WritesTwice(txn.then) || WritesTwice(txn.otherwise)) {
    return absl::InvalidArgumentError("simulated: duplicate key given in txn request");
  }
  if (PutBytes(txn.then) + PutBytes(txn.otherwise) > kMaxRequest) {
    return absl::InvalidArgumentError("simulated: request is too large");
  }
  return absl::OkStatus();
}

std::vector<KvItem> Get(const std::map<std::string, KvItem>& items, const KvOp& op) {
  std::vector<KvItem> out;
  const std::string end = EndOf(op);
  for (auto item = items.lower_bound(op.key); item != items.end() && item->first < end; ++item) {
    if (op.limit != 0 && static_cast<int64_t>(out.size()) == op.limit) break;
    out.push_back(item->second);
  }
  return out;
}

bool Holds(const std::map<std::string, KvItem>& items, const KvCompare& compare) {
  const auto found = items.find(compare.key);
  if (found == items.end()) return compare.revision == 0;
  const KvItem& item = found->second;
  return compare.revision == (compare.field == KvCompare::Field::kCreateRevision
                                  ? item.create_revision
                                  : item.mod_revision);
}

bool AllHold(const std::map<std::string, KvItem>& items, const KvTxn& txn) {
  return std::all_of(txn.compares.begin(), txn.compares.end(),
                     [&](const KvCompare& compare) { return Holds(items, compare); });
}

}  // namespace

class SimulatedEtcd::ClientKv final : public Kv {
 public:
  ClientKv(SimulatedEtcd* etcd, Client* client) : etcd_(*etcd), client_(*client) {}

  absl::StatusOr<KvResult> Commit(const KvTxn& txn) override {
    if (absl::Status valid = CheckTxn(txn); !valid.ok()) return valid;
    if (absl::Status reached = Reach(); !reached.ok()) return reached;
    if (absl::Status valid = CheckLikeEtcd(txn); !valid.ok()) return valid;
    Dice& dice = etcd_.dice_;
    const EtcdFaults& faults = client_.faults;
    if (WritesNothing(txn)) {
      if (dice.Chance(faults.lost_after)) return absl::UnavailableError("simulated: lost");
      return txn.stale ? ReadStale(txn) : Read(etcd_.items_, etcd_.revision_, txn);
    }
    if (!etcd_.HasSpace(txn)) return absl::ResourceExhaustedError("simulated: no space");
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

  absl::Status Compact(int64_t revision) override {
    if (absl::Status reached = Reach(); !reached.ok()) return reached;
    absl::Status status = etcd_.Compact(revision);
    if (etcd_.dice_.Chance(client_.faults.lost_after)) {
      return absl::UnavailableError("simulated: lost");
    }
    return status;
  }

 private:
  // The others go on; then the request gets to etcd, or not.
  absl::Status Reach() {
    client_.between();
    if (client_.cut) return absl::UnavailableError("simulated: cut off");
    if (!etcd_.late_.empty() && etcd_.dice_.Chance(client_.faults.delivered)) etcd_.DeliverOne();
    if (!etcd_.dice_.Chance(client_.faults.lost_before)) return absl::OkStatus();
    return absl::UnavailableError("simulated: lost");
  }

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
    return Read(items_, revision_, txn);
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

KvResult SimulatedEtcd::Read(const Items& items, int64_t revision, const KvTxn& txn) {
  KvResult result{.held = AllHold(items, txn), .revision = revision};
  for (const KvOp& op : result.held ? txn.then : txn.otherwise) {
    result.items.push_back(Get(items, op));
  }
  return result;
}

// Counts both branches, like etcd, which does not know yet which one runs.
bool SimulatedEtcd::HasSpace(const KvTxn& txn) {
  if (!Puts(txn)) return true;
  const size_t needed = std::max(PutBytes(txn.then), PutBytes(txn.otherwise));
  full |= quota_bytes != 0 && bytes_with_history() + needed > quota_bytes;
  return !full;
}

// Each operation sees those before it. What changes nothing has no revision of its own.
KvResult SimulatedEtcd::Apply(const KvTxn& txn) {
  KvResult result{.held = AllHold(items_, txn)};
  const int64_t next = revision_ + 1;
  for (const KvOp& op : result.held ? txn.then : txn.otherwise) {
    std::vector<KvItem>& items = result.items.emplace_back();
    if (op.kind == KvOp::Kind::kGet) {
      items = Get(items_, op);
    } else {
      Write(op, next);
    }
  }
  result.revision = revision_;
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
  const std::string end = EndOf(op);
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
  revision_ = revision;
  if (before != nullptr) {
    old_.push_back({.revision = revision, .bytes = key.size() + before->value.size()});
    old_bytes_ += old_.back().bytes;
    bytes_ -= old_.back().bytes;
  }
  changes_.push_back({.revision = revision, .key = key, .after = item});
  if (item.has_value()) {
    bytes_ += key.size() + item->value.size();
    items_[key] = *std::move(item);
  } else if (found != items_.end()) {
    items_.erase(found);
  }
}

absl::Status SimulatedEtcd::Compact(int64_t revision) {
  if (revision > revision_) {
    return absl::InvalidArgumentError("simulated: required revision is a future revision");
  }
  compacted_ = std::max(compacted_, revision);
  for (; !old_.empty() && old_.front().revision <= compacted_; old_.pop_front()) {
    old_bytes_ -= old_.front().bytes;
  }
  return absl::OkStatus();
}

void SimulatedEtcd::DeliverOne() {
  const auto pick = late_.begin() + static_cast<ptrdiff_t>(dice_.Below(late_.size()));
  const KvTxn txn = std::move(*pick);
  late_.erase(pick);
  if (dice_.Chance(0.7) && HasSpace(txn)) Apply(txn);
}

void SimulatedEtcd::DeliverLate() {
  while (!late_.empty()) DeliverOne();
}

}  // namespace berth::simulation
