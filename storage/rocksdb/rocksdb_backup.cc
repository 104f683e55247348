// RocksDbStore: backups while it runs. RocksDB's checkpoint has the tables linked, where both are
// on one file system, and the end of the write-ahead log copied; bases are linked or copied beside
// them. Made aside, synced and renamed.
#include <fcntl.h>
#include <rocksdb/utilities/checkpoint.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

absl::Status ToStatus(const std::error_code& error, const fs::path& path) {
  if (!error) return absl::OkStatus();
  const std::string text = absl::StrCat(path.string(), ": ", error.message());
  return error == std::errc::no_space_on_device ? absl::ResourceExhaustedError(text)
                                                : absl::InternalError(text);
}

absl::Status Sync(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const std::error_code error(errno, std::generic_category());
  if (descriptor >= 0) close(descriptor);
  return synced ? absl::OkStatus() : ToStatus(error, path);
}

// A base never changes once it has its name. One that has aged out meanwhile is not missed.
absl::Status LinkBase(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (!error || error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  fs::copy_file(from, to, error);
  return error ? ToStatus(error, to) : Sync(to);
}

absl::Status LinkBases(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from, error)) return absl::OkStatus();
  fs::create_directory(to, error);
  if (error) return ToStatus(error, to);
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path name = entry->path().filename();
    const bool whole = name.extension() == ".sst" && name != "new.sst";
    const absl::Status linked = whole ? LinkBase(entry->path(), to / name) : absl::OkStatus();
    if (!linked.ok()) return linked;
  }
  return error ? ToStatus(error, from) : Sync(to);
}

}  // namespace

absl::Status RocksDbStore::CopyTo(const std::string& directory) const {
  const auto database = Get();
  if (!database.ok()) return database.status();
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&(*database)->db(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(directory);
  if (!status.ok()) return berth::ToStatus(status, place_);
  absl::Status linked = LinkBases(place_.directory + kBasesName, directory + kBasesName);
  return linked.ok() ? Sync(directory) : linked;
}

absl::Status RocksDbStore::Backup(const std::string& directory) {
  const fs::path place(directory);
  const fs::path aside = place.parent_path() / absl::StrCat(".", place.filename().string(), ".new");
  std::error_code error;
  if (fs::exists(place, error)) {
    return absl::AlreadyExistsError(absl::StrCat(directory, ": is there already"));
  }
  fs::remove_all(aside, error);  // of one that was interrupted
  troubles_->Ignore(aside);
  const absl::Cleanup heed = [this] { troubles_->Ignore(""); };
  absl::Status status = CopyTo(aside);
  if (status.ok()) {
    fs::permissions(aside, fs::perms::owner_all, error);  // jobs may have secrets in them
    if (!error) fs::rename(aside, place, error);
    status = ToStatus(error, place);
  }
  if (status.ok()) return Sync(place.parent_path());
  fs::remove_all(aside, error);
  return status;
}

}  // namespace berth
