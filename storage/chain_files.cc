#include "storage/chain_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "storage/files.h"
#include "storage/keys.h"
#include "support/log.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kMagic = "BERTHCH1";
constexpr size_t kHeaderBytes = 8 + 8 + 8 + sizeof(ChainHash);
constexpr size_t kLengthBytes = 4;
constexpr size_t kNameDigits = 20;

std::string ChainFileName(uint64_t first) {
  return absl::StrFormat("%020d%s", first, kChainExtension);
}

std::optional<uint64_t> ChainFileSequence(absl::string_view name) {
  uint64_t first = 0;
  const bool ours = name.size() == kNameDigits + sizeof(kChainExtension) - 1 &&
                    absl::EndsWith(name, kChainExtension) &&
                    absl::SimpleAtoi(name.substr(0, kNameDigits), &first) && first > 0;
  return ours ? std::optional<uint64_t>(first) : std::nullopt;
}

absl::Status LastError(const std::string& path) {
  return FileStatus(std::error_code(errno, std::generic_category()), path);
}

// NOT_FOUND if the file is gone. At most `bytes`.
absl::StatusOr<std::string> Contents(const std::string& path, uint64_t bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) return absl::NotFoundError(path);
    return LastError(path);
  }
  std::string content(bytes, '\0');
  file.read(content.data(), static_cast<std::streamsize>(bytes));
  if (file.bad()) return absl::InternalError(absl::StrCat(path, ": cannot be read"));
  content.resize(static_cast<size_t>(file.gcount()));
  return content;
}

void AppendLength(size_t length, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>((length >> shift) & 0xff));
  }
}

// Removes the next entry from `rest`. Nothing if it is incomplete, or cannot be one.
std::optional<ChainLink> TakeEntry(absl::string_view* rest) {
  if (rest->size() < kLengthBytes) return std::nullopt;
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length = length << 8 | static_cast<uint8_t>((*rest)[i]);
  const bool possible = length >= sizeof(ChainHash) &&
                        length <= sizeof(ChainHash) + ChainFiles::kMaxEntry &&
                        rest->size() - kLengthBytes >= length;
  if (!possible) return std::nullopt;
  absl::StatusOr<ChainLink> link = ParseChainEntry(rest->substr(kLengthBytes, length));
  if (!link.ok()) return std::nullopt;
  rest->remove_prefix(kLengthBytes + length);
  return *link;
}

// All bytes at this place of the file.
bool WriteAll(int descriptor, absl::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return true;
}

}  // namespace

struct ChainFiles::Header {
  uint64_t first = 0;
  absl::Time time;
  ChainHash before{};

  std::string Encoded() const {
    return absl::StrCat(kMagic, SequenceKey(first),
                        SequenceKey(static_cast<uint64_t>(absl::ToUnixMicros(time))),
                        ChainHashBytes(before));
  }
  static std::optional<Header> Parse(absl::string_view content) {
    if (content.size() < kHeaderBytes || !absl::StartsWith(content, kMagic)) return std::nullopt;
    Header header;
    header.first = ParseSequenceKey(content.substr(8, 8)).value();
    header.time =
        absl::FromUnixMicros(static_cast<int64_t>(ParseSequenceKey(content.substr(16, 8)).value()));
    header.before = ParseChainHash(content.substr(24, sizeof(ChainHash))).value();
    return header;
  }
};

absl::StatusOr<std::unique_ptr<ChainFiles>> ChainFiles::Open(Options options) {
  std::error_code error;
  if (!options.read_only && fs::create_directory(options.directory, error)) {
    fs::permissions(options.directory, fs::perms::owner_all, error);
  }
  if (error) return FileStatus(error, options.directory);
  std::unique_ptr<ChainFiles> files(new ChainFiles(std::move(options)));
  if (absl::Status status = files->List(); !status.ok()) return status;
  if (absl::Status status = files->OpenLast(); !status.ok()) return status;
  return files;
}

ChainFiles::~ChainFiles() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status ChainFiles::List() {
  std::vector<File> found;
  std::error_code error;
  for (fs::directory_iterator entry(options_.directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<uint64_t> first = ChainFileSequence(entry->path().filename().string());
    if (!first.has_value()) continue;
    File file{.path = entry->path().string(), .first = *first, .bytes = entry->file_size(error)};
    const absl::StatusOr<std::string> head = Contents(file.path, kHeaderBytes);
    if (!head.ok()) return head.status();
    if (const auto header = Header::Parse(*head)) file.time = header->time;
    found.push_back(std::move(file));
  }
  if (error) return FileStatus(error, options_.directory);
  std::sort(found.begin(), found.end(),
            [](const File& a, const File& b) { return a.first < b.first; });
  absl::MutexLock lock(&mutex_);
  files_ = std::move(found);
  return absl::OkStatus();
}

// The end of the last entry that fits the one before it, and what the chain is there. So a changed
// entry in the middle stays where it is, for Verify to name.
struct ChainFiles::End {
  uint64_t bytes = 0;     // 0: not even the header is complete
  uint64_t complete = 0;  // the end of the last complete entry, whether it fits or not
  uint64_t sequence = 0;
  ChainHash hash{};

  static End Of(const File& file, absl::string_view content) {
    End end{.bytes = 0, .complete = 0, .sequence = file.first - 1, .hash = {}};
    const std::optional<Header> header = Header::Parse(content);
    if (!header.has_value()) return end;
    end.bytes = kHeaderBytes;
    end.hash = header->before;
    absl::string_view rest = content.substr(kHeaderBytes);
    ChainHash before = header->before;
    for (uint64_t sequence = file.first; const auto entry = TakeEntry(&rest); ++sequence) {
      if (NextChainHash(before, sequence, entry->turn) == entry->hash) {
        end.bytes = content.size() - rest.size();
        end.sequence = sequence;
        end.hash = entry->hash;
      }
      before = entry->hash;
    }
    end.complete = content.size() - rest.size();
    return end;
  }
};

absl::Status ChainFiles::OpenLast() {
  for (std::vector<File> files = Files(); !files.empty(); files.pop_back()) {
    const File& file = files.back();
    const absl::StatusOr<std::string> content = Contents(file.path, file.bytes);
    if (!content.ok()) return content.status();
    const End end = End::Of(file, *content);
    if (!options_.read_only && end.bytes < content->size()) {
      if (absl::Status cut = CutOff(file, *content, end.bytes); !cut.ok()) return cut;
    }
    if (end.bytes > 0 || options_.read_only) return Continue(end);
    unlink(file.path.c_str());  // it has no entries: the file before it ends the chain
    absl::MutexLock lock(&mutex_);
    files_.pop_back();
  }
  return absl::OkStatus();
}

absl::Status ChainFiles::Continue(const End& end) {
  absl::MutexLock lock(&mutex_);
  hash_ = end.hash;
  last_ = end.sequence;
  File& file = files_.back();
  file.bytes = options_.read_only ? end.complete : end.bytes;
  if (options_.read_only) return absl::OkStatus();
  descriptor_ = open(file.path.c_str(), O_WRONLY | O_CLOEXEC);
  return descriptor_ < 0 ? LastError(file.path) : absl::OkStatus();
}

absl::Status ChainFiles::CutOff(const File& file, const std::string& content, size_t keep) const {
  const std::string aside = file.path + ".cut";
  std::ofstream out(aside, std::ios::binary | std::ios::trunc);
  out << absl::string_view(content).substr(keep);
  out.close();
  if (!out) return absl::ResourceExhaustedError(absl::StrCat(aside, ": cannot be written"));
  std::error_code error;
  fs::resize_file(file.path, keep, error);
  LogWarn("an incomplete end was cut off",
          {{"file", file.path}, {"bytes", content.size() - keep}, {"kept", aside}});
  return FileStatus(error, file.path);
}

bool ChainFiles::NeedsFile(absl::Time now, size_t more) const {
  absl::MutexLock lock(&mutex_);
  if (descriptor_ < 0 || files_.empty()) return true;
  const File& file = files_.back();
  if (file.bytes <= kHeaderBytes) return false;
  return file.bytes + more > options_.file_bytes || now - file.time > options_.file_age;
}

absl::Status ChainFiles::BeginFile(absl::Time now) {
  if (absl::Status synced = Sync(); !synced.ok()) return synced;
  File file{.first = last_sequence() + 1, .time = now, .bytes = kHeaderBytes};
  file.path = absl::StrCat(options_.directory, "/", ChainFileName(file.first));
  const int descriptor = open(file.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return LastError(file.path);
  const std::string header = Header{file.first, now, hash_}.Encoded();
  if (!WriteAll(descriptor, header, 0)) {
    absl::Status status = LastError(file.path);
    close(descriptor);
    unlink(file.path.c_str());
    return status;
  }
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = descriptor;
  synced_ = false;
  absl::MutexLock lock(&mutex_);
  files_.push_back(std::move(file));
  return SyncPath(options_.directory);
}

absl::Status ChainFiles::Append(absl::Time now, const std::vector<std::string>& entries) {
  if (entries.empty()) return absl::OkStatus();
  size_t more = 0;
  for (const std::string& entry : entries) {
    if (entry.size() > kMaxEntry) return absl::InvalidArgumentError("an entry is too long");
    more += kLengthBytes + sizeof(ChainHash) + entry.size();
  }
  if (NeedsFile(now, more)) {
    if (absl::Status begun = BeginFile(now); !begun.ok()) return begun;
  }
  uint64_t sequence = last_sequence();
  ChainHash hash = hash_;
  std::string bytes;
  bytes.reserve(more);
  for (const std::string& entry : entries) {
    hash = NextChainHash(hash, ++sequence, entry);
    AppendLength(sizeof(ChainHash) + entry.size(), &bytes);
    bytes += ChainEntry(hash, entry);
  }
  const File file = Files().back();
  if (!WriteAll(descriptor_, bytes, file.bytes)) {
    absl::Status status = LastError(file.path);
    if (ftruncate(descriptor_, static_cast<off_t>(file.bytes)) != 0) {
      return absl::InternalError(absl::StrCat(file.path, ": cannot be cut to its last entry"));
    }
    return status;
  }
  hash_ = hash;
  synced_ = false;
  absl::MutexLock lock(&mutex_);
  files_.back().bytes += bytes.size();
  last_ = sequence;
  return absl::OkStatus();
}

absl::Status ChainFiles::Sync() {
  if (synced_) return absl::OkStatus();
  if (fdatasync(descriptor_) != 0) return LastError(options_.directory);
  synced_ = true;
  return absl::OkStatus();
}

absl::Status ChainFiles::Trim(absl::Time oldest, uint64_t max_bytes) {
  std::vector<std::string> gone;
  {
    absl::MutexLock lock(&mutex_);
    uint64_t total = 0;
    for (const File& file : files_) total += file.bytes;
    while (files_.size() > 1 && (files_[1].time < oldest || total > max_bytes)) {
      total -= files_.front().bytes;
      gone.push_back(files_.front().path);
      files_.erase(files_.begin());
    }
  }
  absl::Status status;
  for (const std::string& path : gone) {
    std::error_code error;
    fs::remove(path, error);
    fs::remove(path + ".cut", error);
    status.Update(FileStatus(error, path));
  }
  return status;
}

std::vector<ChainFiles::File> ChainFiles::Files() const {
  absl::MutexLock lock(&mutex_);
  return files_;
}

uint64_t ChainFiles::last_sequence() const {
  absl::MutexLock lock(&mutex_);
  return last_;
}

uint64_t ChainFiles::bytes() const {
  uint64_t total = 0;
  for (const File& file : Files()) total += file.bytes;
  return total;
}

absl::Status ChainFiles::Read(
    uint64_t after, absl::Time from,
    absl::FunctionRef<bool(uint64_t sequence, absl::string_view entry)> visit) const {
  const std::vector<File> files = Files();
  for (size_t i = 0; i < files.size(); ++i) {
    const bool has_next = i + 1 < files.size();
    if (has_next && (files[i + 1].first <= after + 1 || files[i + 1].time < from)) continue;
    const absl::StatusOr<std::string> content = Contents(files[i].path, files[i].bytes);
    if (absl::IsNotFound(content.status())) continue;  // it aged out just now
    if (!content.ok()) return content.status();
    if (content->size() < kHeaderBytes) continue;
    absl::string_view rest = absl::string_view(*content).substr(kHeaderBytes);
    uint64_t sequence = files[i].first;
    for (; const auto entry = TakeEntry(&rest); ++sequence) {
      if (sequence > after && !visit(sequence, entry->turn)) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChainFiles::Last() const {
  const uint64_t last = last_sequence();
  std::string found;
  if (last == 0) return found;
  absl::Status status =
      Read(last - 1, absl::InfinitePast(), [&](uint64_t, absl::string_view entry) {
        found = std::string(entry);
        return true;
      });
  if (!status.ok()) return status;
  return found;
}

// Walks files in order.
struct ChainFiles::Check {
  ChainSummary found;
  bool begun = false;

  absl::Status Broken(const File& file, uint64_t sequence, absl::string_view reason) const {
    return absl::DataLossError(absl::StrCat("entry ", sequence, " ", reason, " (",
                                            fs::path(file.path).filename().string(), "); ",
                                            found.entries, " entries before it are unchanged"));
  }

  absl::Status Take(const File& file, absl::string_view content) {
    const std::optional<Header> header = Header::Parse(content);
    if (!header.has_value() || header->first != file.first) {
      return Broken(file, file.first, "is in a file whose beginning was changed");
    }
    if (begun && header->first != found.last + 1) {
      return Broken(file, found.last + 1, "is missing");
    }
    if (begun && header->before != found.head) {
      return Broken(file, header->first, "does not follow the entry before it");
    }
    if (!begun) found.head = header->before;
    begun = true;
    absl::string_view rest = content.substr(kHeaderBytes);
    uint64_t sequence = header->first;
    for (; !rest.empty(); ++sequence) {
      const auto entry = TakeEntry(&rest);
      if (!entry.has_value()) return Broken(file, sequence, "is incomplete");
      if (NextChainHash(found.head, sequence, entry->turn) != entry->hash) {
        return Broken(file, sequence, "was changed");
      }
      if (found.entries++ == 0) found.first = sequence;
      found.last = sequence;
      found.head = entry->hash;
    }
    found.last = sequence - 1;
    return absl::OkStatus();
  }
};

absl::StatusOr<ChainSummary> ChainFiles::Verify() const {
  Check check;
  for (const File& file : Files()) {
    const absl::StatusOr<std::string> content = Contents(file.path, file.bytes);
    if (absl::IsNotFound(content.status()) && !check.begun) continue;  // it aged out just now
    if (!content.ok()) return content.status();
    if (absl::Status status = check.Take(file, *content); !status.ok()) return status;
  }
  if (check.found.entries == 0) check.found.first = check.found.last = 0;
  return check.found;
}

}  // namespace berth
