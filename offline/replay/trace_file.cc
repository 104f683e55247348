#include "offline/replay/trace_file.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace berth::replay {
namespace {

struct CloseFile {
  void operator()(gzFile file) const { gzclose(file); }
};

absl::Status Damaged(const std::string& path, gzFile file) {
  int code = 0;
  const char* text = gzerror(file, &code);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", code == Z_ERRNO ? std::strerror(errno) : text));
}

}  // namespace

absl::StatusOr<std::string> ReadTraceFile(const std::string& path, int64_t max_bytes) {
  std::unique_ptr<std::remove_pointer_t<gzFile>, CloseFile> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  std::string text;
  constexpr unsigned kAtOnce = 1 << 20;
  for (;;) {
    const size_t before = text.size();
    text.resize(before + kAtOnce);
    const int got = gzread(file.get(), text.data() + before, kAtOnce);
    if (got < 0) return Damaged(path, file.get());
    text.resize(before + static_cast<size_t>(got));
    if (static_cast<int64_t>(text.size()) > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, ": more than ", max_bytes, " bytes of text"));
    }
    if (static_cast<unsigned>(got) < kAtOnce) break;
  }
  // Only closing reports a truncated stream.
  if (gzclose_r(file.release()) != Z_OK) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": unexpected end of file"));
  }
  return text;
}

}  // namespace berth::replay
