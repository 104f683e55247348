// The agent's journal in one file (format: proto/berth/agent/v1/journal.proto).
//
// Append = one frame, one write, one fsync. A torn last frame is cut off on opening; a damaged
// frame followed by an intact one is corruption and is refused. When the file has grown to several
// times its content, it is rewritten: temporary file, fsync, rename, fsync of the directory.
#ifndef BERTH_CLIENTS_AGENT_JOURNAL_H_
#define BERTH_CLIENTS_AGENT_JOURNAL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/agent/disk.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/journal_state.h"

namespace berth {

inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;

// Not thread-safe.
class FileJournal final : public Journal {
 public:
  struct Options {
    size_t compact_bytes = size_t{4} << 20;  // minimum file size for compaction
  };
  // Opens or creates DIRECTORY/journal. DATA_LOSS if it is corrupt, FAILED_PRECONDITION if a newer
  // agent wrote it; both name the file and the offset or version. `disk` must outlive it.
  static absl::StatusOr<std::unique_ptr<FileJournal>> Open(Disk& disk, const std::string& directory,
                                                           Options options);

  // The fold of all records written.
  const JournalState& state() const { return state_; }

  absl::Status Append(const std::vector<agent::v1::JournalRecord>& records) override;
  void AppendLater(agent::v1::JournalRecord record) override;
  // Writes pending AppendLater records, for a clean end.
  absl::Status Flush() { return Append({}); }

  uint64_t size() const { return size_; }

 private:
  FileJournal(Disk& disk, std::string directory, Options options);
  absl::Status Load();
  absl::Status Compact();
  std::string Path() const { return directory_ + "/journal"; }

  Disk& disk_;
  const std::string directory_;
  const Options options_;
  JournalState state_;
  std::unique_ptr<Disk::File> file_;
  uint64_t size_ = 0;
  uint64_t compact_at_ = 0;
  agent::v1::JournalBatch later_;
  absl::Status broken_;  // after an error that leaves the file in an unknown state
};

// Stores nothing: for simulated nodes, which never restart.
class NullJournal final : public Journal {
 public:
  absl::Status Append(const std::vector<agent::v1::JournalRecord>&) override {
    return absl::OkStatus();
  }
  void AppendLater(agent::v1::JournalRecord) override {}
};

// Returns `payload` as one frame.
std::string EncodeFrame(absl::string_view payload);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_JOURNAL_H_
