#include "clients/agent/images/umoci.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/agent/images/child.h"
#include "clients/agent/images/file_tree.h"

namespace berth {
namespace {

constexpr char kTag[] = "image";

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file.good() ? absl::OkStatus() : ErrnoError(absl::StrCat("write ", path));
}

// "   ⨯ create rootfs: unpack layer: ..." without the leading symbol.
std::string Plain(absl::string_view words) {
  words = absl::StripAsciiWhitespace(words);
  absl::ConsumePrefix(&words, "\xE2\xA8\xAF");
  return absl::Utf8SafeCHexEscape(absl::StripAsciiWhitespace(words));
}

absl::Status Result(const ChildEnd& end) {
  if (Succeeded(end)) return absl::OkStatus();
  const std::string text =
      absl::StrCat("umoci failed (", HowItEnded(end), "): ", Plain(end.message));
  // SIGXFSZ: a file exceeds the maximum size of an image.
  const bool by_others = WIFSIGNALED(end.status) && WTERMSIG(end.status) != SIGXFSZ;
  return by_others ? absl::InternalError(text) : absl::AbortedError(text);
}

}  // namespace

absl::Status MakeSingleLayout(const OciImage& image, const std::string& layout,
                              const std::string& directory) {
  const std::string own = directory + "/layout";
  if (mkdir(own.c_str(), 0700) != 0) return ErrnoError(absl::StrCat("create ", own));
  if (symlink((layout + "/blobs").c_str(), (own + "/blobs").c_str()) != 0)
    return ErrnoError(absl::StrCat("create ", own, "/blobs"));
  const std::string index = absl::StrCat(
      "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"", image.descriptor.media_type(),
      "\",\"digest\":\"", image.descriptor.digest(), "\",\"size\":", image.descriptor.size(),
      ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"", kTag, "\"}}]}");
  absl::Status status = WriteText(own + "/oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
  if (status.ok()) status = WriteText(own + "/index.json", index);
  return status;
}

absl::Status RunUmoci(const std::string& umoci, const std::string& directory,
                      int64_t max_file_bytes, const std::function<absl::Status()>& watch) {
  const absl::StatusOr<ChildEnd> end =
      RunChild({.program = umoci,
                .argv = {"umoci", "--log=error", "raw", "unpack", "--image",
                         absl::StrCat("layout:", kTag), "rootfs"},
                .directory = directory,
                .max_file_bytes = max_file_bytes},
               watch);
  return end.ok() ? Result(*end) : end.status();
}

}  // namespace berth
