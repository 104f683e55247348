#include "clients/agent/discovery/xml_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace berth::discovery {
namespace {

constexpr int kNewestHwlocXml = 2;
constexpr absl::string_view kHwlocHead =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n";

absl::Status Failed(int error) {
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError("no such file");
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(strerror(error));
  return absl::InvalidArgumentError(strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Must not hang on a pipe or read an endless device.
absl::StatusOr<std::string> ReadRegular(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return Failed(errno);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return Failed(errno);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("not a regular file");
  std::string text;
  std::string block(64 << 10, '\0');
  while (text.size() <= kMaxXmlBytes) {
    const ssize_t n = read(fd.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed(errno);
    if (n == 0) return text;
    text.append(block, 0, static_cast<size_t>(n));
  }
  return absl::InvalidArgumentError(absl::StrCat("larger than ", kMaxXmlBytes, " bytes"));
}

// "2.0"; version 1 files have no version, or "1.x".
absl::Status CheckHwlocVersion(const std::string& version) {
  if (version.empty()) return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  int major = 0;
  if (!absl::SimpleAtoi(parts[0], &major) || major < 1)
    return absl::InvalidArgumentError(absl::StrCat("unknown version \"", version, "\""));
  if (major <= kNewestHwlocXml) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("hwloc XML version ", version, " is not supported (at most ", kNewestHwlocXml,
                   ".x). Export it with \"lstopo --export-xml-flags v2\""));
}

absl::Status Recognise(const std::string& raw, XmlFile* file) {
  const XmlElement& root = file->document.elements[0];
  if (root.name == "topology") {
    file->kind = XmlKind::kHwloc;
    file->text = absl::StrCat(kHwlocHead, WithoutComments(raw.substr(file->document.root_begin)));
    return CheckHwlocVersion(root.Get("version"));
  }
  file->kind = XmlKind::kNccl;
  if (root.name == "system") return absl::OkStatus();
  const bool graph = root.name == "graphs";
  return absl::InvalidArgumentError(
      absl::StrCat("the root is <", root.name, ">", graph ? " (an NCCL graph)" : "",
                   "; <topology> (hwloc) or <system> (NCCL) is expected"));
}

absl::StatusOr<XmlFile> ReadUnnamed(const std::string& path) {
  absl::StatusOr<std::string> text = ReadRegular(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<XmlDocument> document = ParseXml(*text);
  if (!document.ok()) return document.status();
  XmlFile file{.document = *std::move(document)};
  if (absl::Status status = Recognise(*text, &file); !status.ok()) return status;
  return file;
}

}  // namespace

absl::StatusOr<XmlFile> ReadXmlFile(const std::string& path) {
  absl::StatusOr<XmlFile> file = ReadUnnamed(path);
  if (file.ok()) return file;
  return absl::Status(file.status().code(), absl::StrCat(path, ": ", file.status().message()));
}

}  // namespace berth::discovery
