#include "storage/rocksdb/wal_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "storage/rocksdb/wal_tail.h"

namespace berth {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr absl::string_view kBatchWord = "batch ";

bool IsWalName(absl::string_view name) {
  return absl::ConsumeSuffix(&name, ".log") && !name.empty() &&
         name.find_first_not_of("0123456789") == absl::string_view::npos;
}

// 12 for "000012.log".
uint64_t NumberOf(absl::string_view name) {
  uint64_t number = 0;
  absl::ConsumeSuffix(&name, ".log");
  return absl::SimpleAtoi(name, &number) ? number : 0;
}

}  // namespace

WalList::WalList(std::shared_ptr<rocksdb::FileSystem> file_system, std::string directory)
    : file_system_(std::move(file_system)),
      directory_(std::move(directory)),
      acked_(file_system_, PathOf(kAckedName)) {}

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
    if (IsWalName(name)) names_.insert(name);  // created, but not listed yet when the process died
  }
  const uint64_t listed = last_.batch;
  last_ = acked_.Read();
  last_.batch = std::max(last_.batch, listed);
  next_note_ = last_.batch + 1;
  return CheckLength();
}

// The last log with acknowledged data may have been deleted since, as its content is in tables.
absl::Status WalList::CheckLength() const {
  uint64_t bytes = 0;
  for (const std::string& name : names_) {
    if (NumberOf(name) != last_.log) continue;
    const IOStatus asked = file_system_->GetFileSize(PathOf(name), IOOptions(), &bytes, nullptr);
    if (!asked.ok()) {
      return absl::UnavailableError(
          absl::StrCat(directory_, ": ", name, " has unknown length: ", asked.ToString()));
    }
    if (bytes >= last_.bytes) continue;
    return absl::DataLossError(absl::StrCat(
        directory_, ": damaged: the write-ahead log ", name, " ends at byte ", bytes, ", but ",
        last_.bytes, " bytes of it were acknowledged, up to batch ", last_.batch));
  }
  return absl::OkStatus();
}

std::vector<std::string> WalList::Names() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names(names_.begin(), names_.end());
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return NumberOf(a) < NumberOf(b); });
  return names;
}

uint64_t WalList::AcknowledgedBytes(absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  return NumberOf(name) == last_.log ? last_.bytes : 0;
}

absl::Status WalList::Mend(bool read_only) {
  const std::vector<std::string> names = Names();
  if (names.empty()) return absl::OkStatus();
  absl::Status status = CutUnsyncedTail(*file_system_, directory_, names.back(),
                                        AcknowledgedBytes(names.back()), read_only);
  for (const std::string& name : names) {
    if (!status.ok() || read_only) break;
    const IOStatus synced = SyncFile(*file_system_, PathOf(name));
    if (synced.ok()) continue;
    const std::string text = absl::StrCat(PathOf(name), ": ", synced.ToString());
    status = synced.IsNoSpace() ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
  }
  return status;
}

std::string WalList::Newest() const {
  absl::MutexLock lock(&mutex_);
  return last_.log > 0 ? absl::StrFormat("%06d.log", last_.log) : "the write-ahead log";
}

std::string WalList::Damage() const {
  std::vector<std::string> found;
  for (const std::string& name : Names()) {
    std::string damage = DamageOf(*file_system_, PathOf(name));
    if (!damage.empty()) found.push_back(std::move(damage));
  }
  return absl::StrJoin(found, "; ");
}

absl::Status WalList::Parse(const std::string& text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  absl::string_view first = lines.empty() ? absl::string_view() : lines.front();
  bool good = absl::ConsumePrefix(&first, kBatchWord) && absl::SimpleAtoi(first, &last_.batch);
  for (size_t i = 1; i < lines.size(); ++i) {
    good = good && IsWalName(lines[i]);
    names_.emplace(lines[i]);
  }
  if (good) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(directory_, ": damaged: ", kWalListName, " is not a list of write-ahead logs"));
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

void WalList::Synced(absl::string_view path, uint64_t bytes) {
  const uint64_t number = NumberOf(absl::StripPrefix(path, PathOf("")));
  absl::MutexLock lock(&mutex_);
  if (number < last_.log) return;  // logs before the newest are closed, and listed in the MANIFEST
  last_.log = number;
  last_.bytes = bytes;
}

void WalList::Acknowledge(uint64_t sequence) {
  absl::MutexLock lock(&mutex_);
  last_.batch = sequence;
  acked_.Write(last_);
  if (sequence < next_note_ || !Write().ok()) return;
  next_note_ = sequence + std::min(sequence, kAcknowledgedStep);
}

uint64_t WalList::acknowledged() const {
  absl::MutexLock lock(&mutex_);
  return last_.batch;
}

// The directory is synced first, so that a listed file exists in any case.
IOStatus WalList::Write() {
  const std::string text =
      absl::StrCat(kBatchWord, last_.batch, "\n", absl::StrJoin(names_, "\n"), "\n");
  const std::string aside = PathOf(absl::StrCat(kWalListName, ".new"));
  IOStatus status = SyncDirectory(*file_system_, directory_);
  if (status.ok()) {
    status = rocksdb::WriteStringToFile(file_system_.get(), text, aside, /*should_sync=*/true);
  }
  if (status.ok()) {
    status = file_system_->RenameFile(aside, PathOf(kWalListName), IOOptions(), nullptr);
  }
  return status.ok() ? SyncDirectory(*file_system_, directory_) : status;
}

}  // namespace berth
