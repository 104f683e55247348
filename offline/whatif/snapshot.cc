#include "offline/whatif/snapshot.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "berth/config/v1/config.pb.h"
#include "berth/store/v1/store.pb.h"
#include "server/planning/policy_record.h"
#include "storage/codec.h"
#include "storage/load.h"
#include "storage/restore.h"
#include "storage/rocksdb/offline_store.h"

namespace berth {
namespace {

constexpr size_t kTurnsPerRead = 256;

// What the log contains besides the state.
struct LogEnd {
  Time time = absl::InfinitePast();
  std::string policies;
};

absl::StatusOr<LogEnd> ReadLogEnd(Store& store) {
  const absl::StatusOr<uint64_t> first = FirstLogged(store);
  if (!first.ok()) return first.status();
  LogEnd end;
  for (uint64_t after = *first - 1; after < store.LastSequence();) {
    const absl::StatusOr<std::vector<LogEntry>> entries = store.ReadLog(after, kTurnsPerRead);
    if (!entries.ok()) return entries.status();
    for (const LogEntry& entry : *entries) {
      const absl::StatusOr<store::v1::LogTurn> turn = ParseTurn(entry.turn);
      if (!turn.ok()) return turn.status();
      if (!turn->policies().empty()) end.policies = turn->policies();
      end.time =
          absl::FromUnixSeconds(turn->time().seconds()) + absl::Nanoseconds(turn->time().nanos());
      after = entry.sequence;
    }
  }
  return end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Snapshot>> ReadSnapshot(Store& store) {
  if (store.LastSequence() == 0) return absl::NotFoundError("this store is empty");
  const absl::StatusOr<LogEnd> end = ReadLogEnd(store);
  if (!end.ok()) return end.status();
  if (end->policies.empty()) {
    return absl::NotFoundError("no turn in the log records the policies of its planning");
  }
  config::v1::Server record;
  if (!record.ParseFromString(end->policies)) {
    return absl::DataLossError("the log has no valid record of policies");
  }
  auto snapshot = std::make_unique<Snapshot>();
  snapshot->time = end->time;
  snapshot->revision = store.LastSequence();
  snapshot->policies = PolicyConfigFrom(record);
  const auto loaded = LoadState(
      store, snapshot->state, [](StoredRequest) {}, nullptr);
  if (!loaded.ok()) return loaded.status();
  return snapshot;
}

absl::StatusOr<std::unique_ptr<Snapshot>> ReadSnapshot(const std::string& directory) {
  const auto offline = OfflineStore::Open(directory);
  if (!offline.ok()) {
    if (!absl::IsDataLoss(offline.status())) return offline.status();
    return absl::DataLossError(
        absl::StrCat(offline.status().message(), "\n", HowToRestore(directory)));
  }
  return ReadSnapshot((*offline)->store());
}

}  // namespace berth
