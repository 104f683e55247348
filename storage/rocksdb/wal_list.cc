#include "storage/rocksdb/wal_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr absl::string_view kBatchWord = "batch ";

bool IsWalName(absl::string_view name) {
  return absl::ConsumeSuffix(&name, ".log") && !name.empty() &&
         name.find_first_not_of("0123456789") == absl::string_view::npos;
}

}  // namespace

WalList::WalList(std::shared_ptr<rocksdb::FileSystem> file_system, std::string directory)
    : file_system_(std::move(file_system)), directory_(std::move(directory)) {}

std::string WalList::PathOf(absl::string_view name) const {
  return absl::StrCat(directory_, "/", name);
}

bool WalList::Covers(absl::string_view path) const {
  return absl::ConsumePrefix(&path, directory_) && absl::ConsumePrefix(&path, "/") &&
         IsWalName(path);
}

absl::Status WalList::Check() {
  std::vector<std::string> present;
  file_system_->GetChildren(directory_, IOOptions(), &present, nullptr);  // none: a new store
  std::sort(present.begin(), present.end());
  absl::MutexLock lock(&mutex_);
  std::string text;
  const IOStatus read = rocksdb::ReadFileToString(file_system_.get(), PathOf(kWalListName), &text);
  if (read.ok()) {
    if (absl::Status status = Parse(text); !status.ok()) return status;
  } else if (!read.IsPathNotFound() && !read.IsNotFound()) {
    return absl::UnavailableError(
        absl::StrCat(directory_, ": ", kWalListName, " cannot be read: ", read.ToString()));
  }
  for (const std::string& name : names_) {
    if (std::binary_search(present.begin(), present.end(), name)) continue;
    return absl::DataLossError(absl::StrCat(directory_, ": damaged: the write-ahead log ", name,
                                            " is missing; ", kWalListName, " lists it"));
  }
  for (const std::string& name : present) {
    if (IsWalName(name)) names_.insert(name);  // made, but not listed yet when the process died
  }
  next_note_ = acknowledged_ + 1;
  return absl::OkStatus();
}

absl::Status WalList::Parse(const std::string& text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  absl::string_view first = lines.empty() ? absl::string_view() : lines.front();
  bool good = absl::ConsumePrefix(&first, kBatchWord) && absl::SimpleAtoi(first, &acknowledged_);
  for (size_t i = 1; i < lines.size(); ++i) {
    good = good && IsWalName(lines[i]);
    names_.emplace(lines[i]);
  }
  if (good) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(directory_, ": damaged: ", kWalListName, " is no list of write-ahead logs"));
}

IOStatus WalList::Add(absl::string_view path) {
  absl::MutexLock lock(&mutex_);
  const std::string name(absl::StripPrefix(path, PathOf("")));
  const bool is_new = names_.insert(name).second;
  IOStatus status = Write();
  if (!status.ok() && is_new) names_.erase(name);
  return status;
}

IOStatus WalList::Remove(absl::string_view path) {
  absl::MutexLock lock(&mutex_);
  const std::string name(absl::StripPrefix(path, PathOf("")));
  if (names_.erase(name) == 0) return IOStatus::OK();
  IOStatus status = Write();
  if (!status.ok()) names_.insert(name);
  return status;
}

void WalList::Acknowledge(uint64_t sequence) {
  absl::MutexLock lock(&mutex_);
  acknowledged_ = sequence;
  if (sequence < next_note_ || !Write().ok()) return;
  next_note_ = sequence + std::min(sequence, kAcknowledgedStep);
}

uint64_t WalList::acknowledged() const {
  absl::MutexLock lock(&mutex_);
  return acknowledged_;
}

IOStatus WalList::SyncDirectory() const {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  IOStatus status = file_system_->NewDirectory(directory_, IOOptions(), &directory, nullptr);
  return status.ok() ? directory->Fsync(IOOptions(), nullptr) : status;
}

// The directory is synced before, too: a file that is listed is there, whatever happens.
IOStatus WalList::Write() {
  const std::string text =
      absl::StrCat(kBatchWord, acknowledged_, "\n", absl::StrJoin(names_, "\n"), "\n");
  const std::string aside = PathOf(absl::StrCat(kWalListName, ".new"));
  IOStatus status = SyncDirectory();
  if (status.ok()) {
    status = rocksdb::WriteStringToFile(file_system_.get(), text, aside, /*should_sync=*/true);
  }
  if (status.ok()) {
    status = file_system_->RenameFile(aside, PathOf(kWalListName), IOOptions(), nullptr);
  }
  return status.ok() ? SyncDirectory() : status;
}

}  // namespace berth
