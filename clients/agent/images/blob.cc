#include "clients/agent/images/blob.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void Add(absl::string_view data) { EVP_DigestUpdate(context_.get(), data.data(), data.size()); }
  std::string Hex() {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), bytes, &size);
    return absl::BytesToHexString({reinterpret_cast<const char*>(bytes), size});
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

class File {
 public:
  // Non-blocking, so that a FIFO cannot block the caller.
  explicit File(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)),
        error_(fd_ < 0 ? errno : 0) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  absl::StatusOr<int64_t> Bytes(absl::string_view what) const {
    struct stat info;
    if (error_ == ENOENT) return absl::NotFoundError(absl::StrCat(what, " is missing"));
    if (error_ == ELOOP)
      return absl::FailedPreconditionError(absl::StrCat(what, " is a link, not a regular file"));
    if (fd_ < 0 || fstat(fd_, &info) != 0) return Unreadable(what, fd_ < 0 ? error_ : errno);
    if (!S_ISREG(info.st_mode))
      return absl::FailedPreconditionError(absl::StrCat(what, " is not a regular file"));
    return info.st_size;
  }
  // Reads the whole content in pieces.
  absl::Status Read(absl::string_view what,
                    const std::function<bool(absl::string_view)>& take) const {
    std::vector<char> buffer(kReadBytes);
    for (;;) {
      const ssize_t n = read(fd_, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Unreadable(what, errno);
      if (n == 0 || !take({buffer.data(), static_cast<size_t>(n)})) return absl::OkStatus();
    }
  }

 private:
  static absl::Status Unreadable(absl::string_view what, int error) {
    return absl::InternalError(absl::StrCat(what, " cannot be read: ", std::strerror(error)));
  }

  const int fd_;
  const int error_;
};

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, absl::string_view what,
                                          int64_t max_bytes) {
  const File file(path);
  const auto bytes = file.Bytes(what);
  if (!bytes.ok()) return bytes.status();
  std::string text;
  const absl::Status status = file.Read(what, [&](absl::string_view piece) {
    absl::StrAppend(&text, piece);
    return static_cast<int64_t>(text.size()) <= max_bytes;
  });
  if (!status.ok()) return status;
  if (static_cast<int64_t>(text.size()) <= max_bytes) return text;
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is too large: more than ", max_bytes, " bytes"));
}

absl::StatusOr<int64_t> FileBytes(const std::string& path, absl::string_view what) {
  return File(path).Bytes(what);
}

absl::StatusOr<std::string> FileSha256Hex(const std::string& path, absl::string_view what) {
  const File file(path);
  const auto bytes = file.Bytes(what);
  if (!bytes.ok()) return bytes.status();
  Sha256 sum;
  const absl::Status status = file.Read(what, [&](absl::string_view piece) {
    sum.Add(piece);
    return true;
  });
  if (!status.ok()) return status;
  return sum.Hex();
}

std::string Sha256Hex(absl::string_view data) {
  Sha256 sum;
  sum.Add(data);
  return sum.Hex();
}

}  // namespace berth
