#include "storage/rocksdb/wal_tail.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "support/log.h"

namespace berth {
namespace {

using rocksdb::FileSystem;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

absl::Status WalStatus(const IOStatus& status, absl::string_view path) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat(path, ": ", status.ToString());
  return status.IsNoSpace() ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

// Avoids reading a whole log that ends normally.
IOStatus EndsWithZero(FileSystem& file_system, const std::string& path, bool* zero) {
  uint64_t size = 0;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  *zero = false;
  IOStatus status = file_system.GetFileSize(path, IOOptions(), &size, nullptr);
  if (!status.ok() || size == 0) return status;
  status = file_system.NewRandomAccessFile(path, {}, &file, nullptr);
  if (!status.ok()) return status;
  char buffer = 1;
  rocksdb::Slice last;
  status = file->Read(size - 1, 1, IOOptions(), &last, &buffer, nullptr);
  *zero = status.ok() && last.size() == 1 && last[0] == '\0';
  return status;
}

// Deletes the oldest, so that kQuarantineFiles remain with the new one. Names sort by time: a log's
// number has six digits or more, and shorter ones are older.
IOStatus MakeRoom(FileSystem& file_system, const std::string& quarantine) {
  std::vector<std::string> names;
  IOStatus status = file_system.GetChildren(quarantine, IOOptions(), &names, nullptr);
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const auto& name) { return !absl::EndsWith(name, ".cut"); }),
              names.end());
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.find('.'), a) < std::make_pair(b.find('.'), b);
  });
  for (size_t i = 0; status.ok() && i + kQuarantineFiles <= names.size(); ++i) {
    status = file_system.DeleteFile(absl::StrCat(quarantine, "/", names[i]), IOOptions(), nullptr);
  }
  return status;
}

// Durable on return. Zeros at the end are omitted.
IOStatus Keep(FileSystem& file_system, const std::string& directory, const std::string& name,
              absl::string_view tail) {
  const std::string quarantine = absl::StrCat(directory, "/", kQuarantineName);
  IOStatus status = file_system.CreateDirIfMissing(quarantine, IOOptions(), nullptr);
  if (status.ok()) status = SyncDirectory(file_system, directory);
  if (status.ok()) status = MakeRoom(file_system, quarantine);
  if (!status.ok()) return status;
  const size_t content = tail.find_last_not_of('\0') + 1;  // npos + 1 = 0
  const absl::string_view kept = tail.substr(0, std::min(content, kQuarantineBytes));
  status = rocksdb::WriteStringToFile(&file_system, {kept.data(), kept.size()},
                                      absl::StrCat(quarantine, "/", name), /*should_sync=*/true);
  return status.ok() ? SyncDirectory(file_system, quarantine) : status;
}

IOStatus Cut(FileSystem& file_system, const std::string& path, uint64_t size) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = file_system.ReopenWritableFile(path, {}, &file, nullptr);
  if (status.ok()) status = file->Truncate(size, IOOptions(), nullptr);
  if (status.ok()) status = file->Fsync(IOOptions(), nullptr);
  return status.ok() ? file->Close(IOOptions(), nullptr) : status;
}

}  // namespace

IOStatus SyncFile(FileSystem& file_system, const std::string& path) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = file_system.ReopenWritableFile(path, {}, &file, nullptr);
  if (status.ok()) status = file->Fsync(IOOptions(), nullptr);
  return status.ok() ? file->Close(IOOptions(), nullptr) : status;
}

IOStatus SyncDirectory(FileSystem& file_system, const std::string& path) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  IOStatus status = file_system.NewDirectory(path, IOOptions(), &directory, nullptr);
  return status.ok() ? directory->Fsync(IOOptions(), nullptr) : status;
}

std::string DamageOf(FileSystem& file_system, const std::string& path) {
  std::string content;
  if (!rocksdb::ReadFileToString(&file_system, path, &content).ok()) return "";
  const LogScan scan = ScanLog(content);
  if (!scan.bad.has_value()) return "";
  return absl::StrCat(path.substr(path.rfind('/') + 1), ": no valid record at byte ", *scan.bad,
                      " of ", content.size());
}

absl::Status CutUnsyncedTail(FileSystem& file_system, const std::string& directory,
                             const std::string& name, uint64_t acknowledged, bool read_only) {
  const std::string path = absl::StrCat(directory, "/", name);
  bool zero = false;
  IOStatus status = EndsWithZero(file_system, path, &zero);
  if (!status.ok() || !zero) return WalStatus(status, path);
  std::string content;
  status = rocksdb::ReadFileToString(&file_system, path, &content);
  if (!status.ok()) return WalStatus(status, path);
  const LogScan scan = ScanLog(content);
  if (!scan.zeros) return absl::OkStatus();  // RocksDB reports other damage, if any
  if (scan.good < acknowledged) {
    return absl::DataLossError(
        absl::StrCat(directory, ": damaged: ", name, " has zeros from a record at byte ", *scan.bad,
                     " on, where ", acknowledged, " bytes were acknowledged"));
  }
  if (read_only) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory, ": ", name, " ends with zeros that a power cut left, from byte ", scan.good,
        " on; they contain nothing acknowledged. Start berthd once on this "
        "directory to cut them off"));
  }
  const std::string kept = absl::StrCat(absl::StripSuffix(name, ".log"), ".", scan.good, ".cut");
  status = Keep(file_system, directory, kept, absl::string_view(content).substr(scan.good));
  if (status.ok()) status = Cut(file_system, path, scan.good);
  if (!status.ok()) return WalStatus(status, path);
  LogWarn("a power cut left zeros at the end of the write-ahead log; cut off what was never synced",
          {{"directory", directory},
           {"file", name},
           {"from_byte", scan.good},
           {"bytes", content.size() - scan.good},
           {"kept_in", absl::StrCat(kQuarantineName, "/", kept)}});
  return absl::OkStatus();
}

}  // namespace berth
