#include "clients/cli/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr size_t kCopyBytes = size_t{64} << 10;
constexpr int kPermissions = 0777;
constexpr int kExtractFlags = ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME |
                              ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT;

using TarArchive = std::unique_ptr<archive, int (*)(archive*)>;
using TarEntry = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;

absl::Status ErrorOf(archive* from) {
  const char* text = archive_error_string(from);
  return absl::FailedPreconditionError(text == nullptr ? "the archive cannot be read" : text);
}

void NoteSkipped(const std::string& path, absl::string_view why, ArchiveReport* report) {
  if (report->skipped.size() >= kMaxSkipped) {
    ++report->more_skipped;
    return;
  }
  report->skipped.push_back(absl::StrCat(path.empty() ? "." : path, ": ", why));
}

// The source of an archive that is read.
struct Pieces {
  const std::function<std::string()>& next;
  std::string piece;
};

la_ssize_t ReadPiece(archive*, void* data, const void** buffer) {
  auto* pieces = static_cast<Pieces*>(data);
  pieces->piece = pieces->next();
  *buffer = pieces->piece.data();
  return static_cast<la_ssize_t>(pieces->piece.size());
}

la_ssize_t WritePiece(archive* to, void* data, const void* buffer, size_t bytes) {
  const auto& write = *static_cast<const std::function<bool(absl::string_view)>*>(data);
  if (write({static_cast<const char*>(buffer), bytes})) return static_cast<la_ssize_t>(bytes);
  archive_set_error(to, EPIPE, "the task's tar has ended");
  return -1;
}

// The target's directory by its real path: links in what the user typed are followed, those that
// the archive makes are not.
absl::StatusOr<std::string> RealTarget(const std::string& target) {
  const size_t slash = target.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : target.substr(0, slash);
  const std::unique_ptr<char, void (*)(void*)> real(realpath(directory.c_str(), nullptr), free);
  if (real == nullptr)
    return absl::NotFoundError(absl::StrCat(directory, ": ", std::strerror(errno)));
  const std::string leaf = slash == std::string::npos ? target : target.substr(slash + 1);
  const std::string prefix = real.get();
  return absl::StrCat(prefix, prefix == "/" ? "" : "/", leaf);
}

class Extractor {
 public:
  Extractor(archive* from, std::string name, std::string target, ArchiveReport* report)
      : from_(from),
        to_(archive_write_disk_new(), archive_write_free),
        name_(std::move(name)),
        target_(std::move(target)),
        report_(report) {
    archive_write_disk_set_options(to_.get(), kExtractFlags);
  }

  absl::Status Run() {
    archive_entry* entry = nullptr;
    for (;;) {
      const int read = archive_read_next_header(from_, &entry);
      if (read == ARCHIVE_EOF) break;
      if (read < ARCHIVE_WARN) return ErrorOf(from_);
      if (absl::Status status = Take(entry); !status.ok()) return status;
    }
    return archive_write_close(to_.get()) < ARCHIVE_WARN ? ErrorOf(to_.get()) : absl::OkStatus();
  }

 private:
  std::string Place(const std::string& below) const {
    return below.empty() ? target_ : absl::StrCat(target_, "/", below);
  }

  absl::Status Take(archive_entry* entry) {
    const char* path = archive_entry_pathname(entry);
    const absl::StatusOr<std::string> below = PathBelow(path == nullptr ? "" : path, name_);
    if (!below.ok()) return below.status();
    const char* same_as = archive_entry_hardlink(entry);
    if (same_as != nullptr) {
      const absl::StatusOr<std::string> other = PathBelow(same_as, name_);
      if (!other.ok()) return other.status();
      archive_entry_set_hardlink(entry, Place(*other).c_str());
    } else if (const absl::string_view why = Unwanted(entry, *below); !why.empty()) {
      NoteSkipped(*below, why, report_);
      return absl::OkStatus();
    }
    archive_entry_set_pathname(entry, Place(*below).c_str());
    archive_entry_set_perm(entry, archive_entry_perm(entry) & kPermissions);
    if (archive_write_header(to_.get(), entry) < ARCHIVE_WARN) return ErrorOf(to_.get());
    if (archive_entry_filetype(entry) == AE_IFREG) ++report_->files;
    if (absl::Status status = CopyData(); !status.ok()) return status;
    return archive_write_finish_entry(to_.get()) < ARCHIVE_WARN ? ErrorOf(to_.get())
                                                                : absl::OkStatus();
  }

  static absl::string_view Unwanted(archive_entry* entry, const std::string& below) {
    switch (archive_entry_filetype(entry)) {
      case AE_IFREG:
      case AE_IFDIR:
        return "";
      case AE_IFLNK: {
        const char* target = archive_entry_symlink(entry);
        return target != nullptr && LinkStaysBelow(below, target)
                   ? ""
                   : "a link that leads out of what is copied";
      }
      default:
        return "no file, directory or link";
    }
  }

  absl::Status CopyData() {
    for (;;) {
      const void* block = nullptr;
      size_t bytes = 0;
      la_int64_t offset = 0;
      const int read = archive_read_data_block(from_, &block, &bytes, &offset);
      if (read == ARCHIVE_EOF) return absl::OkStatus();
      if (read < ARCHIVE_WARN) return ErrorOf(from_);
      if (archive_write_data_block(to_.get(), block, bytes, offset) < ARCHIVE_WARN)
        return ErrorOf(to_.get());
      report_->bytes += static_cast<int64_t>(bytes);
    }
  }

  archive* const from_;
  const TarArchive to_;
  const std::string name_;
  const std::string target_;
  ArchiveReport* const report_;
};

class TarWriter {
 public:
  TarWriter(std::string source, std::string name, ArchiveReport* report)
      : disk_(archive_read_disk_new(), archive_read_free),
        to_(archive_write_new(), archive_write_free),
        source_(std::move(source)),
        name_(std::move(name)),
        report_(report) {}

  absl::Status Run(const std::function<bool(absl::string_view)>& write) {
    archive_write_set_format_pax_restricted(to_.get());
    auto* data = const_cast<std::function<bool(absl::string_view)>*>(&write);
    if (archive_write_open(to_.get(), data, nullptr, WritePiece, nullptr) != ARCHIVE_OK)
      return ErrorOf(to_.get());
    archive_read_disk_set_symlink_physical(disk_.get());
    if (archive_read_disk_open(disk_.get(), source_.c_str()) != ARCHIVE_OK)
      return ErrorOf(disk_.get());
    const TarEntry entry(archive_entry_new(), archive_entry_free);
    for (;;) {
      archive_entry_clear(entry.get());
      const int read = archive_read_next_header2(disk_.get(), entry.get());
      if (read == ARCHIVE_EOF) break;
      if (read < ARCHIVE_WARN) return ErrorOf(disk_.get());
      archive_read_disk_descend(disk_.get());
      if (absl::Status status = Add(entry.get()); !status.ok()) return status;
    }
    return archive_write_close(to_.get()) < ARCHIVE_WARN ? ErrorOf(to_.get()) : absl::OkStatus();
  }

 private:
  absl::Status Add(archive_entry* entry) {
    const std::string path = archive_entry_pathname(entry);
    const std::string below(absl::StripPrefix(absl::StripPrefix(path, source_), "/"));
    const auto kind = archive_entry_filetype(entry);
    if (kind != AE_IFREG && kind != AE_IFDIR && kind != AE_IFLNK) {
      NoteSkipped(below, "no file, directory or link", report_);
      return absl::OkStatus();
    }
    archive_entry_set_pathname(entry, absl::StrCat(name_, below.empty() ? "" : "/", below).c_str());
    archive_entry_set_uname(entry, nullptr);
    archive_entry_set_gname(entry, nullptr);
    archive_entry_set_perm(entry, archive_entry_perm(entry) & kPermissions);
    archive_entry_set_fflags(entry, 0, 0);
    archive_entry_acl_clear(entry);
    archive_entry_xattr_clear(entry);
    archive_entry_sparse_clear(entry);  // not every tar knows holes
    if (archive_write_header(to_.get(), entry) < ARCHIVE_WARN) return ErrorOf(to_.get());
    if (kind != AE_IFREG) return absl::OkStatus();
    ++report_->files;
    const int64_t told = archive_entry_size(entry), before = report_->bytes;
    absl::Status status = CopyFile(path);
    if (status.ok() && report_->bytes - before != told)
      NoteSkipped(below, "not as a whole: its size changed meanwhile", report_);
    return status;
  }

  absl::Status CopyFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
    std::string buffer(kCopyBytes, '\0');
    absl::Status status;
    while (status.ok()) {
      const ssize_t n = read(fd, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) status = absl::DataLossError(absl::StrCat(path, ": ", std::strerror(errno)));
      if (n <= 0) break;
      report_->bytes += n;
      if (archive_write_data(to_.get(), buffer.data(), static_cast<size_t>(n)) < 0)
        status = ErrorOf(to_.get());
    }
    close(fd);
    return status;
  }

  const TarArchive disk_;
  const TarArchive to_;
  const std::string source_;
  const std::string name_;
  ArchiveReport* const report_;
};

}  // namespace

absl::StatusOr<std::string> PathBelow(absl::string_view entry, absl::string_view name) {
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(entry, '/')) {
    if (part == "..") parts.clear();
    if (part == "..") break;
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  if (absl::StartsWith(entry, "/") || parts.empty() || parts[0] != name) {
    return absl::InvalidArgumentError(absl::StrCat("the task's archive has an entry \"", entry,
                                                   "\", which is not below ", name,
                                                   ": nothing more is taken from it"));
  }
  parts.erase(parts.begin());
  return absl::StrJoin(parts, "/");
}

bool LinkStaysBelow(absl::string_view path, absl::string_view target) {
  // What is beside NAME is not copied.
  if (path.empty() || target.empty() || target[0] == '/') return false;
  int64_t depth = std::count(path.begin(), path.end(), '/');  // directories between NAME and it
  bool named = false;  // what is named may be a link itself, whose ".." is elsewhere
  for (const absl::string_view part : absl::StrSplit(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && (named || --depth < 0)) return false;
    named = named || part != "..";
  }
  return true;
}

absl::Status ExtractTar(const std::function<std::string()>& next, const std::string& name,
                        const std::string& target, ArchiveReport* report) {
  absl::StatusOr<std::string> real = RealTarget(target);
  if (!real.ok()) return real.status();
  const TarArchive from(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(from.get());
  archive_read_support_format_gnutar(from.get());
  Pieces pieces{next, ""};
  if (archive_read_open(from.get(), &pieces, nullptr, ReadPiece, nullptr) != ARCHIVE_OK)
    return ErrorOf(from.get());
  return Extractor(from.get(), name, *std::move(real), report).Run();
}

absl::Status WriteTar(const std::string& source, const std::string& name,
                      const std::function<bool(absl::string_view)>& write, ArchiveReport* report) {
  return TarWriter(source, name, report).Run(write);
}

}  // namespace berth
