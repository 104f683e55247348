#include "storage/rocksdb/watched_file_system.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

using rocksdb::DataVerificationInfo;
using rocksdb::FSDirectory;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Per growing file. A killed process leaves it allocated, which matters on a full disk.
constexpr size_t kPreallocatedBytes = size_t{256} << 10;

// An exhausted quota is a full disk, and so is the limit on file size (RLIMIT_FSIZE, or the file
// system's). RocksDB keeps only the text of errno.
IOStatus LimitAsNoSpace(IOStatus status) {
  static const std::string kQuota = std::strerror(EDQUOT), kSize = std::strerror(EFBIG);
  if (!status.IsIOError()) return status;
  const std::string text = status.ToString();
  const bool is_limit = absl::StrContains(text, kQuota) || absl::StrContains(text, kSize);
  return is_limit ? IOStatus::NoSpace(status.getState()) : status;
}

// `wals` is null, except for a log file that was created now.
class WatchedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WatchedFile(std::unique_ptr<FSWritableFile> file, std::string name,
              std::shared_ptr<DiskErrors> troubles, std::shared_ptr<WalList> wals)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        disk_errors_(std::move(troubles)),
        wals_(std::move(wals)) {}

  // RocksDB requests a whole write buffer at a time.
  void SetPreallocationBlockSize(size_t bytes) override {
    target()->SetPreallocationBlockSize(std::min(bytes, kPreallocatedBytes));
  }
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return Appended(target()->Append(data, options, debug), data.size());
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const DataVerificationInfo& info,
                  IODebugContext* debug) override {
    return Appended(target()->Append(data, options, info, debug), data.size());
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    return Wrote(target()->PositionedAppend(data, offset, options, debug));
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const DataVerificationInfo& info, IODebugContext* debug) override {
    return Wrote(target()->PositionedAppend(data, offset, options, info, debug));
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    return Wrote(target()->Flush(options, debug));
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    return Wrote(target()->Truncate(size, options, debug));
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return Wrote(target()->Close(options, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const uint64_t size = size_.load();
    return AllSynced(Synced(target()->Sync(options, debug)), size);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    const uint64_t size = size_.load();
    return AllSynced(Synced(target()->Fsync(options, debug)), size);
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* debug) override {
    return Synced(target()->RangeSync(offset, bytes, options, debug));
  }

 private:
  IOStatus Wrote(IOStatus status) {
    status = LimitAsNoSpace(std::move(status));
    if (!status.ok()) disk_errors_->Note(status, name_, /*was_sync=*/false);
    return status;
  }
  IOStatus Synced(IOStatus status) {
    status = LimitAsNoSpace(std::move(status));
    if (!status.ok()) disk_errors_->Note(status, name_, /*was_sync=*/true);
    return status;
  }

  IOStatus Appended(IOStatus status, size_t bytes) {
    if (status.ok()) size_ += bytes;
    return Wrote(std::move(status));
  }
  IOStatus AllSynced(IOStatus status, uint64_t size) {
    if (status.ok() && wals_ != nullptr) wals_->Synced(name_, size);
    return status;
  }

  const std::string name_;
  const std::shared_ptr<DiskErrors> disk_errors_;
  const std::shared_ptr<WalList> wals_;
  std::atomic<uint64_t> size_{0};
};

class WatchedDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  WatchedDirectory(std::unique_ptr<FSDirectory> directory, std::string name,
                   std::shared_ptr<DiskErrors> troubles)
      : FSDirectoryWrapper(std::move(directory)),
        name_(std::move(name)),
        disk_errors_(std::move(troubles)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Synced(FSDirectoryWrapper::Fsync(options, debug));
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& directory_options) override {
    return Synced(FSDirectoryWrapper::FsyncWithDirOptions(options, debug, directory_options));
  }

 private:
  IOStatus Synced(IOStatus status) {
    if (!status.ok()) disk_errors_->Note(status, name_, /*was_sync=*/true);
    return status;
  }

  const std::string name_;
  const std::shared_ptr<DiskErrors> disk_errors_;
};

}  // namespace

void DiskErrors::Note(const IOStatus& status, absl::string_view file, bool was_sync) {
  if (status.IsNotSupported()) return;  // RangeSync, on file systems without it
  const std::string text = absl::StrCat(file, ": ", status.ToString());
  // A table that could not be completed is abandoned; its content is still in the log.
  const bool harmless = status.IsNoSpace() && absl::EndsWith(file, ".sst");
  absl::MutexLock lock(&mutex_);
  if (!ignored_.empty() && absl::StartsWith(file, ignored_)) return;
  if (was_sync && !harmless && failed_sync_.empty()) failed_sync_ = text;
  if (status.IsNoSpace()) no_space_ = text;
}

void DiskErrors::Ignore(const std::string& prefix) {
  absl::MutexLock lock(&mutex_);
  ignored_ = prefix;
}

std::string DiskErrors::FailedSync() const {
  absl::MutexLock lock(&mutex_);
  return failed_sync_;
}

std::string DiskErrors::NoSpace() const {
  absl::MutexLock lock(&mutex_);
  return no_space_;
}

IOStatus WatchedFileSystem::Watch(const std::string& name, bool is_new, IOStatus status,
                                  std::unique_ptr<FSWritableFile>* file) {
  if (status.ok() && wals_->Covers(name)) status = wals_->Add(name);
  status = LimitAsNoSpace(std::move(status));
  if (!status.ok()) {
    disk_errors_->Note(status, name, /*was_sync=*/false);
    return status;
  }
  *file = std::make_unique<WatchedFile>(std::move(*file), name, disk_errors_,
                                        is_new && wals_->Covers(name) ? wals_ : nullptr);
  return status;
}

IOStatus WatchedFileSystem::NewWritableFile(const std::string& name,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<FSWritableFile>* file,
                                            IODebugContext* debug) {
  return Watch(name, /*is_new=*/true, target()->NewWritableFile(name, options, file, debug), file);
}

IOStatus WatchedFileSystem::ReopenWritableFile(const std::string& name,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<FSWritableFile>* file,
                                               IODebugContext* debug) {
  return Watch(name, /*is_new=*/false, target()->ReopenWritableFile(name, options, file, debug),
               file);
}

IOStatus WatchedFileSystem::ReuseWritableFile(const std::string& name, const std::string& old_name,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<FSWritableFile>* file,
                                              IODebugContext* debug) {
  return Watch(name, /*is_new=*/false,
               target()->ReuseWritableFile(name, old_name, options, file, debug), file);
}

IOStatus WatchedFileSystem::DeleteFile(const std::string& name, const IOOptions& options,
                                       IODebugContext* debug) {
  if (wals_->Covers(name)) {
    if (IOStatus status = wals_->Remove(name); !status.ok()) return status;
  }
  return target()->DeleteFile(name, options, debug);
}

IOStatus WatchedFileSystem::NewDirectory(const std::string& name, const IOOptions& options,
                                         std::unique_ptr<FSDirectory>* directory,
                                         IODebugContext* debug) {
  IOStatus status = target()->NewDirectory(name, options, directory, debug);
  if (status.ok()) {
    *directory = std::make_unique<WatchedDirectory>(std::move(*directory), name, disk_errors_);
  }
  return status;
}

}  // namespace berth
