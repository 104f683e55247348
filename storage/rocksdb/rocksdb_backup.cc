// RocksDbStore: online backups. RocksDB's checkpoint links the tables if both directories are on
// one file system, and copies the end of the write-ahead log. Bases are linked or copied too. The
// backup is written under a temporary name, synced and renamed.
#include <rocksdb/utilities/checkpoint.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "storage/chain_files.h"
#include "storage/files.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

// For a file that does not change any more. One that was deleted in the meantime is skipped.
absl::Status LinkFile(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (!error || error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  fs::copy_file(from, to, error);
  return error ? FileStatus(error, to) : SyncPath(to);
}

absl::Status LinkBases(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from, error)) return absl::OkStatus();
  fs::create_directory(to, error);
  if (error) return FileStatus(error, to);
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path name = entry->path().filename();
    const bool whole = name.extension() == ".sst" && name != "new.sst";
    const absl::Status linked = whole ? LinkFile(entry->path(), to / name) : absl::OkStatus();
    if (!linked.ok()) return linked;
  }
  return error ? FileStatus(error, from) : SyncPath(to);
}

// Files of a chain grow at the end of the last one only, so that one is copied. What is written or
// deleted in the meantime may be missing: a start cuts an incomplete entry off.
absl::Status CopyChain(const fs::path& from, const fs::path& to) {
  std::error_code error;
  std::set<fs::path> names;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == kChainExtension) names.insert(entry->path().filename());
  }
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (!error) fs::create_directories(to, error);
  if (error) return FileStatus(error, to);
  for (const fs::path& name : names) {
    if (name != *names.rbegin()) {
      if (absl::Status linked = LinkFile(from / name, to / name); !linked.ok()) return linked;
      continue;
    }
    fs::copy_file(from / name, to / name, error);
    absl::Status copied = error ? FileStatus(error, to / name) : SyncPath(to / name);
    if (!copied.ok()) return copied;
  }
  return SyncPath(to);
}

absl::Status CopyAudit(const fs::path& from, const fs::path& to) {
  for (const char* name : {"commands", "refused"}) {
    if (absl::Status copied = CopyChain(from / name, to / name); !copied.ok()) return copied;
  }
  std::error_code error;
  return fs::exists(to, error) ? SyncPath(to) : absl::OkStatus();
}

// Tells operators who move the copy by hand to use --restore.
absl::Status Mark(const fs::path& copy) {
  const fs::path path = copy / kBackupMark;
  std::ofstream file(path);
  file << "A backup. `berthd --restore` makes a store of it.\n";
  file.close();
  if (!file) return FileStatus(std::make_error_code(std::errc::io_error), path);
  return SyncPath(path);
}

}  // namespace

absl::Status RocksDbStore::CopyTo(const std::string& directory) const {
  const auto database = Get();
  if (!database.ok()) return database.status();
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&(*database)->db(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(directory);
  if (!status.ok()) return ToStatus(status, place_);
  absl::Status copied = LinkBases(place_.directory + kBasesName, directory + kBasesName);
  if (copied.ok()) {
    copied = CopyAudit(fs::path(place_.directory) / kAuditName, fs::path(directory) / kAuditName);
  }
  if (copied.ok()) copied = Mark(directory);
  return copied.ok() ? SyncPath(directory) : copied;
}

absl::Status RocksDbStore::Backup(const std::string& directory) {
  const fs::path place(directory);
  const fs::path aside = place.parent_path() / absl::StrCat(".", place.filename().string(), ".new");
  std::error_code error;
  if (fs::exists(place, error)) {
    return absl::AlreadyExistsError(absl::StrCat(directory, ": already exists"));
  }
  fs::remove_all(aside, error);  // left by an interrupted backup
  disk_errors_->Ignore(aside);
  const absl::Cleanup heed = [this] { disk_errors_->Ignore(""); };
  absl::Status status = CopyTo(aside);
  if (status.ok()) {
    fs::permissions(aside, fs::perms::owner_all, error);  // jobs may contain secrets
    if (!error) fs::rename(aside, place, error);
    status = FileStatus(error, place);
  }
  if (status.ok()) return SyncPath(place.parent_path());
  fs::remove_all(aside, error);
  return status;
}

}  // namespace berth
