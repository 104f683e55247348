// Records what a program does to a disk, step by step, and models the disk after a power cut at any
// step.
//
// A disk keeps what was synced: for a file the bytes before its last sync, for a directory the
// names before its last sync. Of later writes it keeps a prefix, separately for each file and
// directory. A file whose name was not synced is lost. POSIX guarantees this, and most file systems
// guarantee more.
//
//   auto recorded = std::make_shared<RecordedDisk>(directory);
//   { RocksDbOptions options{.file_system = recorded}; ... }
//   for (size_t step = 0; step <= recorded->steps(); ++step) {
//     recorded->AfterPowerCut(step, PowerCut::kLeast, random).WriteTo(other_directory);
#ifndef BERTH_TESTS_CRASH_RECORDED_DISK_H_
#define BERTH_TESTS_CRASH_RECORDED_DISK_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "support/random.h"

namespace berth {

// How much unsynced data survives.
enum class PowerCut : uint8_t {
  kLeast,  // nothing
  kMost,   // all of it
  kSome,   // a prefix for each file and directory
  kTorn,   // the same, and some of these files end with zeros instead of sectors
};

// Files by path below the disk's directory; a directory ends with '/'.
struct DiskImage {
  std::map<std::string, std::string> files;
  void WriteTo(const std::string& directory) const;  // the directory is emptied first
};

class RecordedDisk final : public rocksdb::FileSystemWrapper {
 public:
  // Records what happens below `directory`, which may contain files already.
  explicit RecordedDisk(std::string directory);
  const char* Name() const override { return "Recorded"; }

  // A mark of the test between steps, such as the number of acknowledged batches.
  void Mark(uint64_t mark) ABSL_LOCKS_EXCLUDED(mutex_);
  // Syncs of files fail from now on, and their data is not durable. A process that then reopens the
  // files finds what a killed process wrote but did not sync.
  void FailSyncs(bool fail) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t steps() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the step makes something durable: a sync, or a name that is added, removed or changed.
  bool Durable(size_t step) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The last mark before the step, or 0.
  uint64_t MarkBefore(size_t step) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Describe(size_t step) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The disk if the power is cut after the first `steps`.
  DiskImage AfterPowerCut(size_t steps, PowerCut cut, Random& random) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDir(const std::string& name, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& name, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  // Not used yet, so their effect is not modelled.
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;

 private:
  class File;
  class RandomFile;
  class Directory;
  enum class Kind : uint8_t {
    kCreate,
    kReopen,
    kAppend,
    kOverwrite,
    kTruncate,
    kSync,
    kRename,
    kDelete,
    kMakeDirectory,
    kSyncDirectory,
  };
  struct Step {
    Kind kind = Kind::kCreate;
    uint32_t file = 0;      // of kCreate to kSync: numbered in order of creation
    std::string name = {};  // below the directory; directories end with '/'
    std::string to = {};    // of kRename
    std::string data = {};  // of kAppend and kOverwrite
    uint64_t size = 0;      // of kTruncate; the offset of kOverwrite
    uint64_t mark = 0;      // the mark before the step
  };
  class Model;

  // Whether the path is below the directory; `name` is the relative path.
  bool Mine(const std::string& path, std::string* name) const;
  uint32_t NewFile(Kind kind, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  bool failing() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Note(Step step) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string directory_;
  DiskImage before_;
  mutable absl::Mutex mutex_;
  std::vector<Step> steps_ ABSL_GUARDED_BY(mutex_);
  uint32_t files_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t mark_ ABSL_GUARDED_BY(mutex_) = 0;
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace berth

#endif  // BERTH_TESTS_CRASH_RECORDED_DISK_H_
