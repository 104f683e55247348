#include "storage/fsck.h"

#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "storage/chain_files.h"
#include "storage/codec.h"
#include "storage/files.h"
#include "storage/incarnation.h"
#include "storage/keys.h"
#include "storage/load.h"
#include "storage/rocksdb/offline_store.h"

namespace berth {
namespace {

std::string PrintHash(uint64_t hash) { return absl::StrCat(absl::Hex(hash, absl::kZeroPad16)); }

// Folds the log, if there is a state to start from.
struct Folding {
  ClusterState state;
  bool whole = false;
  uint64_t from = 0;  // the batch at which the fold starts
  uint64_t turns = 0;
  uint64_t events = 0;

  absl::Status Begin(Store& store) {
    const absl::StatusOr<uint64_t> earliest = LoadEarliest(store, state);
    if (absl::IsNotFound(earliest.status())) return absl::OkStatus();
    if (!earliest.ok()) return earliest.status();
    from = *earliest;
    whole = true;
    return absl::OkStatus();
  }

  absl::Status Take(uint64_t sequence, absl::string_view turn) {
    ++turns;
    const absl::StatusOr<LoggedTurn> logged = DecodeTurn(turn);
    if (!logged.ok()) return logged.status();
    if (logged->sequence != sequence) {
      return absl::DataLossError(absl::StrCat("log ", sequence, ": says it is ", logged->sequence));
    }
    events += logged->events.size();
    return whole && sequence > from ? Fold(*logged) : absl::OkStatus();
  }

 private:
  absl::Status Fold(const LoggedTurn& logged) {
    for (const Event& event : logged.events) {
      const absl::Status status = Apply(state, event);
      if (status.ok()) continue;
      return absl::DataLossError(absl::StrCat(
          "log ", logged.sequence, ": an event that cannot have been: ", status.message()));
    }
    state.StampDirty(logged.sequence);
    state.TakeDirty();
    return absl::OkStatus();
  }
};

absl::Status CheckRecords(RocksDbStore& store, ClusterState& state, std::ostream& report) {
  const absl::StatusOr<LoadSummary> summary = LoadState(
      store, state, [](StoredRequest) {}, nullptr);
  if (!summary.ok()) return summary.status();
  report << "records    " << summary->queues << " queues, " << summary->nodes << " nodes, "
         << summary->hyper_nodes << " HyperNodes, " << summary->jobs << " jobs, "
         << summary->job_statuses << " job statuses, " << summary->tasks << " tasks, "
         << summary->requests << " requests: all decode and fit\n";
  if (absl::Status status = CheckConsistency(state); !status.ok()) {
    return absl::DataLossError(absl::StrCat("state: ", status.message()));
  }
  report << "state      consistent, fingerprint " << PrintHash(Fingerprint(state)) << "\n";
  return absl::OkStatus();
}

absl::Status CheckFold(const Folding& folding, const ClusterState& loaded, std::ostream& report) {
  if (!folding.whole) {
    report << "fold       skipped: the log's beginning has aged out, and there is no base\n";
    return absl::OkStatus();
  }
  const uint64_t folded = Fingerprint(folding.state);
  if (folded != Fingerprint(loaded)) {
    return absl::DataLossError(absl::StrCat("the records differ from the log: fingerprint ",
                                            PrintHash(folded), " from the log"));
  }
  report << "fold       the log's events"
         << (folding.from > 0 ? absl::StrCat(" after batch ", folding.from) : "")
         << " give the same state\n";
  return absl::OkStatus();
}

absl::Status CheckAll(RocksDbStore& store, std::ostream& report) {
  report << "open       batch " << store.LastSequence() << ", cluster " << store.ClusterId()
         << ", incarnation " << store.Incarnation() << ", format " << store.Format() << "\n";
  if (absl::Status status = store.VerifyChecksums(); !status.ok()) return status;
  report << "checksums  every table block\n";

  Folding folding;
  absl::Status status = folding.Begin(store);
  if (!status.ok()) return status;
  status = store.VerifyChain(
      [&](uint64_t sequence, absl::string_view turn) { return folding.Take(sequence, turn); });
  if (!status.ok()) return status;
  report << "log        " << folding.turns << " batches, " << folding.events
         << " events: chain whole, all decode\n";

  ClusterState loaded;
  if (status = CheckRecords(store, loaded, report); !status.ok()) return status;
  // As servers do when they start (server/loop/load.h), which no event says.
  const JobId first = FirstJobOf(store.Incarnation());
  for (ClusterState* state : {&folding.state, &loaded}) StateEditor(*state).RaiseNextJob(first);
  return CheckFold(folding, loaded, report);
}

}  // namespace

absl::Status Fsck(const std::string& directory, std::ostream& report) {
  const auto offline = OfflineStore::Open(directory);
  if (!offline.ok()) return offline.status();
  absl::Status status = CheckAll((*offline)->store(), report);
  report << (status.ok() ? "clean\n" : absl::StrCat("DAMAGED    ", status.message(), "\n"));
  return status;
}

absl::Status FsckAudit(const std::string& directory, std::ostream& report) {
  for (const char* name : {"commands", "refused"}) {
    const std::string part = absl::StrCat(kAuditName, "/", name);
    const std::string place = absl::StrCat(directory, "/", part);
    if (!std::filesystem::is_directory(place)) continue;
    const auto files = ChainFiles::Open({.directory = place, .read_only = true});
    if (!files.ok()) return files.status();
    const absl::StatusOr<ChainSummary> found = (*files)->Verify();
    if (!found.ok()) {
      report << "DAMAGED    " << part << ": " << found.status().message() << "\n";
      return absl::FailedPreconditionError(absl::StrCat(part, ": ", found.status().message()));
    }
    report << "audit      " << name << ": " << found->entries << " entries: chain whole\n";
  }
  return absl::OkStatus();
}

}  // namespace berth
