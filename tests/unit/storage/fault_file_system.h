// A file system below RocksDB with injected faults: space that runs out in the middle of a write,
// syncs that fail, and power cuts, after which only synced data remains.
#ifndef BERTH_TESTS_UNIT_STORAGE_FAULT_FILE_SYSTEM_H_
#define BERTH_TESTS_UNIT_STORAGE_FAULT_FILE_SYSTEM_H_

#include <rocksdb/file_system.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"

namespace berth {

class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "Fault"; }

  // Bytes that can still be written; after that "no space".
  void SetSpace(size_t bytes) {
    absl::MutexLock lock(&mutex_);
    space_ = bytes;
  }
  void UnlimitedSpace() { SetSpace(std::numeric_limits<size_t>::max()); }
  // Writes exceed a quota, which the file system's free space does not show.
  void UseUpQuota(bool used_up) {
    absl::MutexLock lock(&mutex_);
    quota_used_up_ = used_up;
  }
  // Syncs of files whose name has this suffix fail from now on.
  void FailSyncs(std::string suffix, bool no_space = false) {
    absl::MutexLock lock(&mutex_);
    failing_ = std::move(suffix);
    fail_no_space_ = no_space;
  }
  // Overwrites fail from now on.
  void FailOverwrites(bool fail) {
    absl::MutexLock lock(&mutex_);
    fail_overwrites_ = fail;
  }
  // From now on nothing reaches the disk, but every call reports success.
  void CutPower() {
    absl::MutexLock lock(&mutex_);
    power_ = false;
  }
  // Removes what was never synced. All files must be closed.
  void LoseUnsynced() {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, synced] : synced_) {
      std::error_code missing;
      const auto size = std::filesystem::file_size(name, missing);
      if (!missing && size > synced) std::filesystem::resize_file(name, synced);
    }
    synced_.clear();
    power_ = true;
  }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->NewWritableFile(name, options, file, debug);
    if (!status.ok()) return status;
    absl::MutexLock lock(&mutex_);
    synced_[name] = 0;
    *file = std::make_unique<File>(std::move(*file), name, this);
    return status;
  }
  rocksdb::IOStatus NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->NewRandomRWFile(name, options, file, debug);
    if (status.ok()) *file = std::make_unique<RandomFile>(std::move(*file), this);
    return status;
  }
  rocksdb::IOStatus GetFreeSpace(const std::string&, const rocksdb::IOOptions&, uint64_t* free,
                                 rocksdb::IODebugContext*) override {
    absl::MutexLock lock(&mutex_);
    *free = space_;
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    absl::MutexLock lock(&mutex_);
    if (!power_) return rocksdb::IOStatus::OK();
    rocksdb::IOStatus status = target()->RenameFile(from, to, options, debug);
    if (auto moved = synced_.extract(from)) {
      moved.key() = to;
      synced_.erase(to);
      synced_.insert(std::move(moved));
    }
    return status;
  }

 private:
  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name, FaultFileSystem* faults)
        : FSWritableFileOwnerWrapper(std::move(file)), name_(std::move(name)), faults_(faults) {}

    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      // Worded like RocksDB, with the path and the text of the errno.
      if (faults_->quota_used_up()) {
        return rocksdb::IOStatus::IOError("While appending to file: " + name_, strerror(EDQUOT));
      }
      const size_t room = faults_->TakeSpace(data.size());
      rocksdb::IOStatus status =
          target()->Append(rocksdb::Slice(data.data(), room), options, debug);
      if (status.ok()) size_ += room;
      if (status.ok() && room < data.size()) return rocksdb::IOStatus::NoSpace("no space", name_);
      return status;
    }
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             const rocksdb::DataVerificationInfo&,
                             rocksdb::IODebugContext* debug) override {
      return Append(data, options, debug);
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      rocksdb::IOStatus status = faults_->BeforeSync(name_, size_);
      return status.ok() ? target()->Sync(options, debug) : status;
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    const std::string name_;
    FaultFileSystem* const faults_;
    uint64_t size_ = 0;
  };

  class RandomFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
   public:
    RandomFile(std::unique_ptr<rocksdb::FSRandomRWFile> file, FaultFileSystem* faults)
        : FSRandomRWFileOwnerWrapper(std::move(file)), faults_(faults) {}

    rocksdb::IOStatus Write(uint64_t offset, const rocksdb::Slice& data,
                            const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      absl::MutexLock lock(&faults_->mutex_);
      if (faults_->fail_overwrites_) return rocksdb::IOStatus::IOError("injected");
      return faults_->power_ ? target()->Write(offset, data, options, debug)
                             : rocksdb::IOStatus::OK();
    }

   private:
    FaultFileSystem* const faults_;
  };

  bool quota_used_up() {
    absl::MutexLock lock(&mutex_);
    return quota_used_up_;
  }
  size_t TakeSpace(size_t bytes) {
    absl::MutexLock lock(&mutex_);
    const size_t taken = std::min(bytes, space_);
    if (space_ != std::numeric_limits<size_t>::max()) space_ -= taken;
    return taken;
  }
  rocksdb::IOStatus BeforeSync(const std::string& name, uint64_t size) {
    absl::MutexLock lock(&mutex_);
    if (!failing_.empty() && absl::EndsWith(name, failing_)) {
      return fail_no_space_ ? rocksdb::IOStatus::NoSpace("no space at sync", name)
                            : rocksdb::IOStatus::IOError("injected", name);
    }
    if (power_) synced_[name] = size;
    return rocksdb::IOStatus::OK();
  }

  absl::Mutex mutex_;
  size_t space_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<size_t>::max();
  std::string failing_ ABSL_GUARDED_BY(mutex_);
  bool fail_no_space_ ABSL_GUARDED_BY(mutex_) = false;
  bool power_ ABSL_GUARDED_BY(mutex_) = true;
  bool quota_used_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool fail_overwrites_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, uint64_t> synced_ ABSL_GUARDED_BY(mutex_);  // bytes, by file
};

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_STORAGE_FAULT_FILE_SYSTEM_H_
