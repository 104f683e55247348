#include "clients/agent/images/image_user.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

constexpr size_t kMaxUserFile = size_t{1} << 20;
constexpr uint32_t kGreatestId = 1'000'000'000;

// A regular file of the image; "" if there is none. Links are resolved inside the image.
std::string ReadInside(const std::string& rootfs, const char* path) {
  const int root = open(rootfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  open_how how{};
  how.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  const int fd = static_cast<int>(syscall(SYS_openat2, root, path, &how, sizeof how));
  std::string text;
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    text.resize(kMaxUserFile);
    const ssize_t n = read(fd, text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  }
  for (const int open_fd : {root, fd}) {
    if (open_fd >= 0) close(open_fd);
  }
  return text;
}

std::optional<uint32_t> ToId(absl::string_view text) {
  uint32_t id = 0;
  if (!absl::SimpleAtoi(text, &id) || id > kGreatestId) return std::nullopt;
  return id;
}

// The fields of the line whose first field is `name`, or whose third is this number.
std::vector<std::string> FindLine(const std::string& file, const std::string& name, size_t fields) {
  for (const absl::string_view line : absl::StrSplit(file, '\n')) {
    std::vector<std::string> parts = absl::StrSplit(line, ':');
    if (parts.size() < fields || parts[0].empty()) continue;
    if (parts[0] == name || parts[2] == name) return parts;
  }
  return {};
}

}  // namespace

void SetImageUser(const std::string& user, const std::string& rootfs,
                  agent::v1::UnpackedImage* record) {
  const std::vector<std::string> words = absl::StrSplit(user, absl::MaxSplits(':', 1));
  if (words[0].empty() || user.find('\0') != std::string::npos) return;
  const std::vector<std::string> line = FindLine(ReadInside(rootfs, "etc/passwd"), words[0], 6);
  const bool known = !line.empty();
  const std::optional<uint32_t> uid = ToId(known ? line[2] : words[0]);
  std::optional<uint32_t> gid = known ? ToId(line[3]) : 0;
  if (words.size() > 1) {
    const std::vector<std::string> group = FindLine(ReadInside(rootfs, "etc/group"), words[1], 3);
    gid = ToId(group.empty() ? words[1] : group[2]);
  }
  if (!uid.has_value() || !gid.has_value() || *uid == 0) return;
  record->set_user(known ? line[0] : words[0]);
  record->set_uid(*uid);
  record->set_gid(*gid);
  record->set_home(known && !line[5].empty() && line[5][0] == '/' ? line[5] : "/");
}

}  // namespace berth
