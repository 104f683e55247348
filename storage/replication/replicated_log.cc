#include "storage/replication/replicated_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

namespace pb = store::v1;

constexpr char kDeposed[] = "another server leads the cluster: term ";
constexpr int64_t kPartsPerRead = 32;        // 2 MiB
constexpr size_t kBytesPerView = 16u << 20;  // compressed; then `more`
constexpr absl::Duration kRetryDelay = absl::Milliseconds(10);

template <class Message>
absl::Status Parse(const KvItem& item, const char* what, Message* out) {
  if (out->ParseFromString(item.value)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("etcd: the record ", what, " is not valid"));
}

bool NoAnswer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

KvOp Get(std::string key) { return {.kind = KvOp::Kind::kGet, .key = std::move(key)}; }
KvOp Put(std::string key, std::string value) {
  return {.kind = KvOp::Kind::kPut, .key = std::move(key), .value = std::move(value)};
}
KvOp Delete(std::string from, std::string end) {
  return {.kind = KvOp::Kind::kDelete, .key = std::move(from), .end = std::move(end)};
}

}  // namespace

absl::Status Deposed(uint64_t term) { return absl::AbortedError(absl::StrCat(kDeposed, term)); }
bool IsDeposed(const absl::Status& status) { return absl::IsAborted(status); }

ReplicatedLog::ReplicatedLog(Kv* kv, ReplicationLayout layout, Options options)
    : kv_(kv), layout_(std::move(layout)), options_(std::move(options)) {}
ReplicatedLog::ReplicatedLog(Kv* kv, ReplicationLayout layout)
    : ReplicatedLog(kv, std::move(layout), Options()) {}

KvCompare ReplicatedLog::Holds(uint64_t term) const {
  return {.key = layout_.Leader(),
          .field = KvCompare::Field::kModRevision,
          .revision = static_cast<int64_t>(term)};
}

absl::StatusOr<KvResult> ReplicatedLog::Commit(const KvTxn& txn) {
  absl::StatusOr<KvResult> result = kv_->Commit(txn);
  if (!result.ok()) return result;
  int64_t seen = revision_.load();
  while (seen < result->revision && !revision_.compare_exchange_weak(seen, result->revision)) {
  }
  return result;
}

// ---- Appending

absl::Status ReplicatedLog::Append(uint64_t term, const ChainHash& hash_before,
                                   absl::Span<const Batch* const> batches,
                                   ReplicatedLogSize* size) {
  absl::StatusOr<std::vector<std::string>> parts = EncodeParts(term, hash_before, batches);
  if (!parts.ok()) return parts.status();
  *size = {.bytes = 0, .parts = parts->size()};
  for (const std::string& part : *parts) size->bytes += part.size();
  const uint64_t first = batches.front()->sequence;
  std::vector<KvTxn> txns;
  for (size_t i = 0; i < parts->size(); ++i) {
    const std::string key = layout_.Part(first, static_cast<uint32_t>(i));
    txns.push_back({.compares = {Holds(term), {key, KvCompare::Field::kCreateRevision, 0}},
                    .then = {Put(key, std::move((*parts)[i]))},
                    .otherwise = {Get(layout_.Leader()), Get(key)}});
  }
  std::vector<bool> done(txns.size(), false);
  for (absl::Duration waited; waited < options_.patience; waited += kRetryDelay) {
    const absl::StatusOr<bool> all = TryAppend(term, txns, done);
    if (!all.ok()) return all.status();
    if (*all) return absl::OkStatus();
    options_.sleep(kRetryDelay);
  }
  return absl::ResourceExhaustedError("etcd does not answer");
}

// A part without an answer is sent again: the branch `otherwise` tells whether it was committed.
absl::StatusOr<bool> ReplicatedLog::TryAppend(uint64_t term, const std::vector<KvTxn>& txns,
                                              std::vector<bool>& done) {
  std::vector<KvTxn> rest;
  std::vector<size_t> indices;
  for (size_t i = 0; i < txns.size(); ++i) {
    if (done[i]) continue;
    rest.push_back(txns[i]);
    indices.push_back(i);
  }
  absl::Status failed;
  const auto results = kv_->CommitAll(rest, kPartsInFlight);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) {
      if (!NoAnswer(results[i].status())) failed = results[i].status();
      continue;
    }
    if (!results[i]->held) {
      const auto& items = results[i]->items;
      const bool leads =
          items[0].size() == 1 && items[0][0].mod_revision == static_cast<int64_t>(term);
      if (!leads) return Deposed(items[0].empty() ? 0 : items[0][0].mod_revision);
      if (items[1].empty() || items[1][0].value != rest[i].then[0].value) {
        return absl::DataLossError("etcd's log already has other batches there");
      }
    }
    done[indices[i]] = true;
  }
  if (!failed.ok()) return failed;
  return std::find(done.begin(), done.end(), false) == done.end();
}

// ---- Reading

absl::StatusOr<ClusterView> ReplicatedLog::Read(uint64_t after, bool stale) {
  const KvTxn txn{.compares = {},
                  .then = {Get(layout_.Leader()), Get(layout_.Alive()), Get(layout_.Base()),
                           Get(layout_.Generation())},
                  .stale = stale};
  absl::StatusOr<KvResult> result = Commit(txn);
  if (!result.ok()) return result.status();
  if (result->items.size() != txn.then.size()) return absl::InternalError("etcd: short answer");
  ClusterView view;
  view.revision = result->revision;
  absl::Status parsed;
  if (const auto& leader = result->items[0]; !leader.empty()) {
    view.term = static_cast<uint64_t>(leader[0].mod_revision);
    parsed.Update(Parse(leader[0], "leader", &view.leader));
  }
  if (const auto& alive = result->items[1]; !alive.empty()) {
    view.alive_revision = alive[0].mod_revision;
    parsed.Update(Parse(alive[0], "alive", &view.alive));
  }
  if (const auto& base = result->items[2]; !base.empty()) {
    parsed.Update(Parse(base[0], "base", &view.base));
  }
  if (const auto& generation = result->items[3]; !generation.empty()) {
    pb::GenerationRecord record;
    parsed.Update(Parse(generation[0], "generation", &record));
    view.next_generation = record.next();
    view.earlier_terms = record.earlier_terms();
  }
  if (!parsed.ok()) return parsed;
  // Read after the leader: what a leader of an earlier term could still write is not in question.
  if (absl::Status status = ReadGroups(after, stale, &view); !status.ok()) return status;
  return view;
}

absl::Status ReplicatedLog::ReadGroups(uint64_t after, bool stale, ClusterView* view) {
  std::string from = layout_.Part(after + 1, 0);
  uint64_t next = after + 1;
  PartCollector collector;
  for (size_t bytes = 0;;) {
    const KvTxn txn{.compares = {},
                    .then = {{.kind = KvOp::Kind::kGet,
                              .key = from,
                              .end = layout_.LogEnd(),
                              .limit = kPartsPerRead}},
                    .stale = stale};
    absl::StatusOr<KvResult> result = Commit(txn);
    if (!result.ok()) return result.status();
    if (result->items.size() != 1) return absl::InternalError("etcd: short answer");
    const std::vector<KvItem>& items = result->items[0];
    for (const KvItem& item : items) {
      bytes += item.value.size();
      const auto place = layout_.ParsePart(item.key);
      if (!place.ok()) return place.status();
      if (place->first != next) {
        view->gap |= place->first > next;
        continue;
      }
      view->torn.push_back({.key = item.key, .create_revision = item.create_revision});
      absl::Status added = collector.Add(place->first, place->second, item.value);
      if (!added.ok()) return added;
      if (!collector.complete()) continue;
      absl::StatusOr<ReplicatedBatches> group = collector.Take();
      if (!group.ok()) return group.status();
      next = group->batches.back().sequence + 1;
      view->torn.clear();
      view->groups.push_back(*std::move(group));
    }
    const bool end = items.size() < kPartsPerRead;
    view->more = !end;
    if (end || (bytes > kBytesPerView && !view->groups.empty())) return absl::OkStatus();
    from = absl::StrCat(items.back().key, absl::string_view("\0", 1));
  }
}

absl::StatusOr<std::vector<std::pair<std::string, pb::MemberRecord>>> ReplicatedLog::ReadMembers() {
  const KvTxn txn{.compares = {},
                  .then = {{.kind = KvOp::Kind::kGet,
                            .key = layout_.Members(),
                            .end = layout_.MembersEnd(),
                            .limit = 64}}};
  const absl::StatusOr<KvResult> result = Commit(txn);
  if (!result.ok()) return result.status();
  if (result->items.size() != 1) return absl::InternalError("etcd: short answer");
  std::vector<std::pair<std::string, pb::MemberRecord>> members;
  for (const KvItem& item : result->items[0]) {
    auto& [name, record] = members.emplace_back();
    name = std::string(absl::StripPrefix(item.key, layout_.Members()));
    if (absl::Status status = Parse(item, "of a member", &record); !status.ok()) return status;
  }
  return members;
}

absl::StatusOr<uint64_t> ReplicatedLog::ReadTerm() {
  const absl::StatusOr<KvResult> result = Commit({.compares = {}, .then = {Get(layout_.Leader())}});
  if (!result.ok()) return result.status();
  if (result->items.size() != 1) return absl::InternalError("etcd: short answer");
  const std::vector<KvItem>& leader = result->items[0];
  return leader.empty() ? 0 : static_cast<uint64_t>(leader[0].mod_revision);
}

// ---- Changes of a term

absl::StatusOr<uint64_t> ReplicatedLog::BeginTerm(uint64_t seen, const pb::LeaderRecord& leader) {
  const absl::StatusOr<KvResult> result =
      Commit({.compares = {Holds(seen)},
              .then = {Put(layout_.Leader(), leader.SerializeAsString()),
                       Put(layout_.Alive(), pb::AliveRecord().SerializeAsString())},
              .otherwise = {Get(layout_.Leader())}});
  if (!result.ok()) return result.status();
  if (result->held) return static_cast<uint64_t>(result->revision);
  const bool none = result->items.empty() || result->items[0].empty();
  return Deposed(none ? 0 : static_cast<uint64_t>(result->items[0][0].mod_revision));
}

absl::Status ReplicatedLog::Fenced(uint64_t term, std::vector<KvCompare> compares,
                                   std::vector<KvOp> ops) {
  compares.push_back(Holds(term));
  const absl::StatusOr<KvResult> result = Commit({.compares = std::move(compares),
                                                  .then = std::move(ops),
                                                  .otherwise = {Get(layout_.Leader())}});
  if (!result.ok()) return result.status();
  if (result->held) return absl::OkStatus();
  const bool none = result->items.empty() || result->items[0].empty();
  const uint64_t now = none ? 0 : static_cast<uint64_t>(result->items[0][0].mod_revision);
  // The term goes on: another compare does not hold, because it has happened before.
  return now == term ? absl::AlreadyExistsError("etcd: it was written meanwhile") : Deposed(now);
}

absl::Status ReplicatedLog::Cut(uint64_t term, absl::Span<const ClusterView::TornPart> parts) {
  for (size_t at = 0; at < parts.size(); at += kMaxKvOps / 2) {
    std::vector<KvCompare> compares;
    std::vector<KvOp> deletes;
    for (const ClusterView::TornPart& part : parts.subspan(at, kMaxKvOps / 2)) {
      compares.push_back({part.key, KvCompare::Field::kCreateRevision, part.create_revision});
      deletes.push_back(Delete(part.key, ""));
    }
    absl::Status cut = Fenced(term, std::move(compares), std::move(deletes));
    if (!cut.ok()) return cut;
  }
  return absl::OkStatus();
}

absl::Status ReplicatedLog::Beat(uint64_t term, const pb::AliveRecord& alive) {
  return Fenced(term, {}, {Put(layout_.Alive(), alive.SerializeAsString())});
}

absl::Status ReplicatedLog::Trim(uint64_t term, uint64_t through, const ChainHash& hash) {
  const absl::StatusOr<KvResult> found = Commit({.compares = {}, .then = {Get(layout_.Base())}});
  if (!found.ok()) return found.status();
  if (found->items.size() != 1) return absl::InternalError("etcd: short answer");
  int64_t seen = 0;
  pb::BaseRecord base;
  if (const std::vector<KvItem>& items = found->items[0]; !items.empty()) {
    seen = items[0].mod_revision;
    if (absl::Status parsed = Parse(items[0], "base", &base); !parsed.ok()) return parsed;
    if (base.through() >= through) return absl::OkStatus();
  }
  base.set_through(through);
  base.set_hash(ChainHashBytes(hash));
  return Fenced(term, {{layout_.Base(), KvCompare::Field::kModRevision, seen}},
                {Put(layout_.Base(), base.SerializeAsString()),
                 Delete(layout_.Part(0, 0), layout_.Part(through + 1, 0))});
}

absl::Status ReplicatedLog::DeleteThrough(uint64_t term, uint64_t through) {
  return Fenced(term, {}, {Delete(layout_.Part(0, 0), layout_.Part(through + 1, 0))});
}

absl::Status ReplicatedLog::WriteMember(const std::string& name, const pb::MemberRecord& record) {
  return Commit({.compares = {}, .then = {Put(layout_.Member(name), record.SerializeAsString())}})
      .status();
}

absl::Status ReplicatedLog::DeleteMember(uint64_t term, const std::string& name) {
  return Fenced(term, {}, {Delete(layout_.Member(name), "")});
}

}  // namespace berth
