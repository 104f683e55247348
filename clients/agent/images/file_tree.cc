#include "clients/agent/images/file_tree.h"

#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

constexpr int64_t kBlockBytes = 512;  // the unit of st_blocks on every file system

// Calls `visit` once per entry, with directories before their contents.
absl::Status Walk(const std::string& path,
                  const std::function<absl::Status(const FTSENT&)>& visit) {
  std::string root = path;
  char* roots[] = {root.data(), nullptr};
  FTS* walk = fts_open(roots, FTS_PHYSICAL, nullptr);
  if (walk == nullptr) return ErrnoError(absl::StrCat("read ", path));
  absl::Status status;
  while (const FTSENT* entry = fts_read(walk)) {
    if (entry->fts_info == FTS_DP) continue;
    status.Update(visit(*entry));
    errno = 0;
  }
  if (errno != 0) status.Update(ErrnoError(absl::StrCat("read ", path)));
  fts_close(walk);
  return status;
}

bool HasInfo(const FTSENT& entry) {
  return entry.fts_info != FTS_NS && entry.fts_info != FTS_ERR && entry.fts_info != FTS_DNR;
}

}  // namespace

absl::Status ErrnoError(const std::string& what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

TreeSize MeasureTree(const std::string& path) {
  TreeSize size;
  Walk(path, [&](const FTSENT& entry) {
    ++size.files;
    if (!HasInfo(entry)) return absl::OkStatus();
    const struct stat& info = *entry.fts_statp;
    const int64_t names = S_ISDIR(info.st_mode) ? 1 : static_cast<int64_t>(info.st_nlink);
    if (names > 0) size.bytes += info.st_blocks * kBlockBytes / names;
    return absl::OkStatus();
  }).IgnoreError();
  return size;
}

absl::Status RemoveDeviceFiles(const std::string& path) {
  return Walk(path, [&](const FTSENT& entry) {
    if (!HasInfo(entry)) {
      return absl::InternalError(
          absl::StrCat("read ", entry.fts_path, ": ", std::strerror(entry.fts_errno)));
    }
    const mode_t mode = entry.fts_statp->st_mode;
    if ((!S_ISCHR(mode) && !S_ISBLK(mode)) || unlink(entry.fts_accpath) == 0)
      return absl::OkStatus();
    return ErrnoError(absl::StrCat("remove ", entry.fts_path));
  });
}

}  // namespace berth
