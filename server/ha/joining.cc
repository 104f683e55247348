#include "server/ha/joining.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "berth/store/v1/replication.pb.h"

namespace berth {
namespace {

namespace pb = store::v1;

constexpr size_t kMaxGenerations = 256;
constexpr absl::Duration kBeatsApart = absl::Seconds(3);

std::string GenerationText(const FoundGeneration& generation) {
  return absl::StrCat(generation.cluster_id, " (generation ", generation.incarnation, ")");
}

std::string GenerationsText(const std::vector<FoundGeneration>& found) {
  return absl::StrJoin(found, ", ", [](std::string* out, const FoundGeneration& generation) {
    absl::StrAppend(out, GenerationText(generation));
  });
}

KvOp Put(std::string key, std::string value) {
  return {.kind = KvOp::Kind::kPut, .key = std::move(key), .value = std::move(value)};
}

// Ends a generation: `next` follows it. Overwriting its leader ends its leader's term.
KvTxn EndingOf(const ReplicationLayout& layout, uint64_t next) {
  pb::GenerationRecord ended;
  ended.set_next(next);
  return {.compares = {},
          .then = {Put(layout.Generation(), ended.SerializeAsString()),
                   Put(layout.Leader(), pb::LeaderRecord().SerializeAsString())}};
}

}  // namespace

absl::StatusOr<std::vector<FoundGeneration>> ListGenerations(Kv& kv) {
  std::vector<FoundGeneration> found;
  std::string from = kReplicationRoot;
  while (found.size() < kMaxGenerations) {
    const absl::StatusOr<KvResult> result =
        kv.Commit({.compares = {},
                   .then = {{.kind = KvOp::Kind::kGet,
                             .key = from,
                             .end = "/berth0",  // '0' follows '/'
                             .limit = 1}}});
    if (!result.ok()) return result.status();
    if (result->items.size() != 1 || result->items[0].empty()) return found;
    const absl::StatusOr<FoundGeneration> next = ParseGenerationKey(result->items[0][0].key);
    if (!next.ok()) return next.status();
    found.push_back(*next);
    std::string prefix = ReplicationLayout(next->cluster_id, next->incarnation).prefix();
    ++prefix.back();  // after all keys of the generation
    from = std::move(prefix);
  }
  return absl::ResourceExhaustedError("etcd has too many generations of clusters");
}

absl::StatusOr<FoundGeneration> OnlyGeneration(const std::vector<FoundGeneration>& found) {
  if (found.empty()) {
    return absl::NotFoundError(
        "etcd has no cluster yet: run `berthd --ha-init` once, on the server whose store is to be "
        "the cluster's");
  }
  FoundGeneration newest = found.front();
  for (const FoundGeneration& generation : found) {
    if (generation.cluster_id != newest.cluster_id) {
      return absl::FailedPreconditionError(absl::StrCat(
          "etcd is shared by several clusters, ", GenerationsText(found),
          ": which one is this server's? Copy the store of another of its servers here"));
    }
    if (generation.incarnation > newest.incarnation) newest = generation;
  }
  return newest;
}

absl::Status CheckGeneration(const std::vector<FoundGeneration>& found,
                             const FoundGeneration& ours) {
  uint64_t newest = 0;
  for (const FoundGeneration& generation : found) {
    if (generation.cluster_id == ours.cluster_id) {
      newest = std::max(newest, generation.incarnation);
    }
  }
  if (std::find(found.begin(), found.end(), ours) != found.end() && newest == ours.incarnation) {
    return absl::OkStatus();
  }
  if (newest > ours.incarnation) {
    return absl::FailedPreconditionError(
        absl::StrCat("a restore has begun generation ", newest,
                     " of the cluster, and this server's store is of "
                     "generation ",
                     ours.incarnation,
                     ": move the store away; at the next start it is copied "
                     "from another server"));
  }
  const std::string begin = "`berthd --ha-init` begins one with this server's store";
  if (newest != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this server's store was restored from a backup (generation ", ours.incarnation,
        ", etcd has ", newest, "): ", begin, " and ends the one of before"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "etcd does not know this server's cluster ", GenerationText(ours),
      found.empty() ? "" : absl::StrCat(", but ", GenerationsText(found)), ": ", begin,
      found.empty() ? "" : ". If that is another cluster's etcd, give this one its own"));
}

namespace {

// A generation that left etcd begins anew; nothing of its old log counts.
absl::StatusOr<bool> BeginAnew(Kv& kv, const ReplicationLayout& layout, const std::string& base,
                               const std::string& generation) {
  const absl::StatusOr<KvResult> found =
      kv.Commit({.compares = {}, .then = {{.kind = KvOp::Kind::kGet, .key = layout.Generation()}}});
  if (!found.ok()) return found.status();
  pb::GenerationRecord ended;
  const std::vector<KvItem>& items = found->items[0];
  if (items.empty() || !ended.ParseFromString(items[0].value) || ended.next() != kNoGeneration) {
    return false;
  }
  const absl::StatusOr<KvResult> begun = kv.Commit(
      {.compares = {{layout.Generation(), KvCompare::Field::kModRevision, items[0].mod_revision}},
       .then = {{.kind = KvOp::Kind::kDelete, .key = layout.Part(0, 0), .end = layout.LogEnd()},
                Put(layout.Base(), base),
                Put(layout.Generation(), generation)}});
  if (!begun.ok()) return begun.status();
  return begun->held;
}

}  // namespace

absl::Status BeginGeneration(Kv& kv, const LocalStore& store, uint64_t earlier_terms) {
  const FoundGeneration ours{store.ClusterId(), store.Incarnation()};
  const absl::StatusOr<std::vector<FoundGeneration>> found = ListGenerations(kv);
  if (!found.ok()) return found.status();
  std::vector<FoundGeneration> earlier;
  for (const FoundGeneration& generation : *found) {
    if (generation.cluster_id != ours.cluster_id || generation == ours) continue;
    if (generation.incarnation > ours.incarnation) return CheckGeneration(*found, ours);
    earlier.push_back(generation);
  }
  for (const FoundGeneration& generation : earlier) {
    const ReplicationLayout layout(generation.cluster_id, generation.incarnation);
    const auto ended = kv.Commit(EndingOf(layout, ours.incarnation));
    if (!ended.ok()) return ended.status();
  }
  const ReplicationLayout layout(ours.cluster_id, ours.incarnation);
  pb::BaseRecord base;
  base.set_through(store.LastSequence());
  base.set_hash(ChainHashBytes(store.LastHash()));
  pb::GenerationRecord generation;
  generation.set_earlier_terms(earlier_terms);
  const absl::StatusOr<KvResult> begun =
      kv.Commit({.compares = {{layout.Base(), KvCompare::Field::kCreateRevision, 0}},
                 .then = {Put(layout.Base(), base.SerializeAsString()),
                          Put(layout.Generation(), generation.SerializeAsString())}});
  if (!begun.ok()) return begun.status();
  if (begun->held) return absl::OkStatus();
  const absl::StatusOr<bool> anew =
      BeginAnew(kv, layout, base.SerializeAsString(), generation.SerializeAsString());
  if (!anew.ok()) return anew.status();
  if (*anew) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("etcd has the cluster ", GenerationText(ours), " already"));
}

absl::StatusOr<uint64_t> EndGeneration(Kv& kv, const LocalStore& store, const std::string& name) {
  ReplicatedLog log(&kv, ReplicationLayout(store.ClusterId(), store.Incarnation()));
  const auto before = log.ReadMembers();
  if (!before.ok()) return before.status();
  absl::SleepFor(kBeatsApart);
  const auto after = log.ReadMembers();
  if (!after.ok()) return after.status();
  for (const auto& [member, record] : *after) {
    const auto same = [&, member = member, beat = record.beat()](const auto& earlier) {
      return earlier.first == member && earlier.second.beat() == beat;
    };
    if (member != name && std::none_of(before->begin(), before->end(), same)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the server ", member, " of the cluster is running: stop it first"));
    }
  }
  const absl::StatusOr<ClusterView> view = log.Read(store.LastSequence(), /*stale=*/false);
  if (!view.ok()) return view.status();
  if (!view->groups.empty() || view->base.through() > store.LastSequence()) {
    return absl::FailedPreconditionError(
        "etcd's log goes on after this server's store: start the server once more with "
        "high availability, so that it catches up");
  }
  const absl::StatusOr<KvResult> ended = kv.Commit(EndingOf(log.layout(), kNoGeneration));
  if (!ended.ok()) return ended.status();
  return view->earlier_terms + static_cast<uint64_t>(ended->revision);
}

}  // namespace berth
