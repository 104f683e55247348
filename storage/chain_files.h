// ChainFiles: entries appended to files of a directory, each with a hash over the entry before, as
// in the log of the store (storage/hash_chain.h). The oldest files can be deleted: each begins with
// the hash before its first entry, so the rest can still be verified. FORMAT.md has the bytes.
#ifndef BERTH_STORAGE_CHAIN_FILES_H_
#define BERTH_STORAGE_CHAIN_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/hash_chain.h"

namespace berth {

// What Verify found.
struct ChainSummary {
  uint64_t first = 0, last = 0;  // sequences of the entries that are kept; 0: none
  uint64_t entries = 0;
  ChainHash head{};  // hash of the last entry; before the first one zeros
};

inline constexpr char kChainExtension[] = ".chain";

class ChainFiles {
 public:
  struct Options {
    std::string directory;                      // created if its parent exists
    uint64_t file_bytes = uint64_t{8} << 20;    // an entry beyond begins a new file,
    absl::Duration file_age = absl::Hours(24);  // and so does one this long after the file's first
    bool read_only = false;  // for checks: changes nothing, and leaves out an incomplete end
  };
  static constexpr size_t kMaxEntry = size_t{1} << 20;  // bytes

  // Cuts off what a crash left incomplete at the end of the last file, and keeps it beside the file
  // (NAME.cut). INTERNAL, RESOURCE_EXHAUSTED: the disk.
  static absl::StatusOr<std::unique_ptr<ChainFiles>> Open(Options options);
  ~ChainFiles();
  ChainFiles(const ChainFiles&) = delete;
  ChainFiles& operator=(const ChainFiles&) = delete;

  // Appends the entries, all or none; they have the sequences after last_sequence(). Not synced.
  // One thread at a time with Sync and Trim. INVALID_ARGUMENT: an entry above kMaxEntry.
  absl::Status Append(absl::Time now, const std::vector<std::string>& entries)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes what was appended survive a power cut.
  absl::Status Sync();
  // Deletes files whose entries are all from before `oldest`, and the oldest files beyond
  // `max_bytes`; never the last file.
  absl::Status Trim(absl::Time oldest, uint64_t max_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // The rest is thread-safe.
  uint64_t last_sequence() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Visits the entries with sequence > after in order, until `visit` returns false. Leaves out
  // files that were complete before `from`, and what follows a damaged length in its file.
  absl::Status Read(uint64_t after, absl::Time from,
                    absl::FunctionRef<bool(uint64_t sequence, absl::string_view entry)> visit) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The last entry; empty if there is none.
  absl::StatusOr<std::string> Last() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks every hash. DATA_LOSS naming the first entry that does not fit, and its file.
  absl::StatusOr<ChainSummary> Verify() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct File {
    std::string path;
    uint64_t first = 0;                      // sequence of its first entry
    absl::Time time = absl::InfinitePast();  // when that was appended
    uint64_t bytes = 0;                      // that are complete
  };
  struct Header;
  struct End;
  struct Check;

  explicit ChainFiles(Options options) : options_(std::move(options)) {}
  absl::Status List();
  absl::Status OpenLast();
  absl::Status Continue(const End& end);
  absl::Status CutOff(const File& file, const std::string& content, size_t keep) const;
  absl::Status BeginFile(absl::Time now);
  bool NeedsFile(absl::Time now, size_t more) const;
  std::vector<File> Files() const ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  // The writer's.
  int descriptor_ = -1;  // of the last file
  ChainHash hash_{};     // of the last entry
  bool synced_ = true;

  mutable absl::Mutex mutex_;
  std::vector<File> files_ ABSL_GUARDED_BY(mutex_);  // in order
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth

#endif  // BERTH_STORAGE_CHAIN_FILES_H_
