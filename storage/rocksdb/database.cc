#include "storage/rocksdb/database.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

using Families = std::vector<rocksdb::ColumnFamilyDescriptor>;

// A newer version may have more kinds of records: refuse before changing anything.
absl::Status CheckFamilies(const DatabasePlace& place, const Families& known) {
  if (place.env->FileExists(place.directory + "/CURRENT").IsNotFound()) {
    if (place.read_only) return absl::NotFoundError(place.directory + ": no store there");
    return ToStatus(place.env->CreateDirIfMissing(place.directory), place);
  }
  std::vector<std::string> present;
  const rocksdb::Status status = rocksdb::DB::ListColumnFamilies(
      DatabaseOptions(place.env, place.complaints), place.directory, &present);
  if (!status.ok()) return ToStatus(status, place);
  for (const std::string& name : present) {
    const bool is_known = std::any_of(known.begin(), known.end(),
                                      [&](const auto& family) { return family.name == name; });
    if (is_known) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        place.directory, ": holds \"", name, "\" records: written by a newer version of berthd"));
  }
  return absl::OkStatus();
}

absl::Status InUse(const rocksdb::Status& status, const DatabasePlace& place) {
  return absl::UnavailableError(
      absl::StrCat(place.directory, ": in use by another process (", status.ToString(), ")"));
}

}  // namespace

bool IsLocked(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return status.IsIOError() && (absl::StrContains(text, "While lock file") ||
                                absl::StrContains(text, "lock hold by current process"));
}

absl::Status ToStatus(const rocksdb::Status& status, const DatabasePlace& place) {
  if (status.ok()) return absl::OkStatus();
  const std::string complaints = place.complaints->Recent();
  const std::string text =
      absl::StrCat(place.directory, ": ", status.ToString(),
                   complaints.empty() ? "" : absl::StrCat(" [", complaints, "]"));
  if (status.IsCorruption()) return absl::DataLossError(text);
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

DirectoryLock::DirectoryLock(const DatabasePlace& place) : env_(place.env) {
  if (place.read_only || !env_->FileExists(place.directory).ok()) return;
  const rocksdb::Status locked = env_->LockFile(place.directory + "/LOCK", &lock_);
  if (!locked.ok()) status_ = IsLocked(locked) ? InUse(locked, place) : ToStatus(locked, place);
}

DirectoryLock::~DirectoryLock() {
  if (lock_ != nullptr) env_->UnlockFile(lock_);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const DatabasePlace& place) {
  const Families known = ColumnFamilies();
  if (absl::Status status = CheckFamilies(place, known); !status.ok()) return status;

  std::unique_ptr<Database> database(new Database());
  rocksdb::DB* raw = nullptr;
  rocksdb::DBOptions settings = DatabaseOptions(place.env, place.complaints);
  settings.write_buffer_manager = place.write_buffers;
  const rocksdb::Status status =
      place.read_only
          ? rocksdb::DB::OpenForReadOnly(settings, place.directory, known, &database->families_,
                                         &raw)
          : rocksdb::DB::Open(settings, place.directory, known, &database->families_, &raw);
  database->db_.reset(raw);
  if (status.ok()) return database;
  return IsLocked(status) ? InUse(status, place) : ToStatus(status, place);
}

Database::~Database() {
  if (db_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* family : families_) db_->DestroyColumnFamilyHandle(family);
  db_->Close();
}

std::unique_ptr<rocksdb::Iterator> Database::Scan(RecordKind kind) const {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = size_t{2} << 20;
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(options, Family(kind)));
}

std::unique_ptr<rocksdb::Iterator> Database::Page(RecordKind kind) const {
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(rocksdb::ReadOptions(), Family(kind)));
}

}  // namespace berth
