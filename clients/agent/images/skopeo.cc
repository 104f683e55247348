#include "clients/agent/images/skopeo.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/images/child.h"
#include "clients/agent/images/file_tree.h"

namespace berth {
namespace {

constexpr size_t kMaxManifestBytes = size_t{4} << 20;
constexpr size_t kMaxReasonBytes = 500;

// The text of its last message: `time="..." level=fatal msg="TEXT"`.
std::string ReasonIn(absl::string_view message) {
  constexpr absl::string_view kBefore = "msg=\"";
  const size_t begin = message.rfind(kBefore);
  if (begin == absl::string_view::npos) {
    return absl::Utf8SafeCHexEscape(absl::StripAsciiWhitespace(message.substr(0, kMaxReasonBytes)));
  }
  std::string text;
  for (size_t i = begin + kBefore.size(); i < message.size() && message[i] != '"'; ++i) {
    if (message[i] == '\\' && i + 1 < message.size()) ++i;
    text.push_back(message[i]);
  }
  // "Error parsing image name \"docker://...\": reading manifest ..."
  const size_t quoted = text.find("\": ");
  if (absl::StartsWith(text, "Error") && quoted != std::string::npos) text.erase(0, quoted + 3);
  return absl::Utf8SafeCHexEscape(text.substr(0, kMaxReasonBytes));
}

// The authority's file, in a directory as skopeo wants it.
absl::StatusOr<std::string> MakeAuthorities(const std::string& directory, const std::string& ca) {
  const std::string path = directory + "/authorities";
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoError("create " + path);
  const std::string link = path + "/ca.crt";
  unlink(link.c_str());
  if (symlink(ca.c_str(), link.c_str()) != 0) return ErrnoError("create " + link);
  return path;
}

absl::Status AddAccess(const agent::v1::RegistrySource& source, const std::string& directory,
                       const std::string& prefix, std::vector<std::string>* argv) {
  argv->push_back(absl::StrCat("--", prefix, "tls-verify=", source.http() ? "false" : "true"));
  if (source.credentials().empty()) {
    argv->push_back(absl::StrCat("--", prefix, "no-creds"));
  } else {
    argv->push_back(absl::StrCat("--", prefix.empty() ? "" : "src-", "authfile"));
    argv->push_back(source.credentials());
  }
  if (source.ca().empty()) return absl::OkStatus();
  const auto authorities = MakeAuthorities(directory, source.ca());
  if (!authorities.ok()) return authorities.status();
  argv->push_back(absl::StrCat("--", prefix, "cert-dir"));
  argv->push_back(*authorities);
  return absl::OkStatus();
}

std::string UrlOf(const agent::v1::RegistrySource& source, const std::string& name) {
  return absl::StrCat("docker://", source.host(), "/", name);
}

bool HasAny(absl::string_view text, std::initializer_list<absl::string_view> words) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (const absl::string_view word : words) {
    if (absl::StrContains(lower, word)) return true;
  }
  return false;
}

}  // namespace

absl::Status SkopeoError(const std::string& host, const std::string& message) {
  const std::string reason = ReasonIn(message);
  if (HasAny(reason, {"no space left on device"})) {
    return absl::ResourceExhaustedError(absl::StrCat("the disk is full: ", reason));
  }
  if (HasAny(reason, {"unauthorized", "authentication required", "denied", "403 (forbidden)",
                      "invalid username/password"})) {
    return absl::UnauthenticatedError(
        absl::StrCat("registry ", host, " does not accept the credentials: ", reason));
  }
  if (HasAny(reason, {"manifest unknown", "name unknown", "repository name not known",
                      "404 (not found)"})) {
    return absl::NotFoundError(absl::StrCat("registry ", host, " has no such image: ", reason));
  }
  if (HasAny(reason, {"digest did not match", "does not match", "digest mismatch",
                      "invalid checksum", "verification failed"})) {
    return absl::AbortedError(
        absl::StrCat("registry ", host, " sent something else than the image: ", reason));
  }
  return absl::UnavailableError(absl::StrCat("registry ", host, ": ", reason));
}

absl::StatusOr<std::string> Skopeo::ReadManifest(const agent::v1::RegistrySource& source,
                                                 const std::string& name,
                                                 const Watch& watch) const {
  std::vector<std::string> argv = {"skopeo", "inspect", "--raw"};
  absl::Status status = AddAccess(source, directory_, "", &argv);
  if (!status.ok()) return status;
  argv.push_back(UrlOf(source, name));
  const auto end = RunChild({.program = program_,
                             .argv = std::move(argv),
                             .directory = directory_,
                             .max_file_bytes = max_file_bytes_,
                             .max_output = kMaxManifestBytes},
                            watch);
  if (!end.ok()) return end.status();
  if (!Succeeded(*end)) return SkopeoError(source.host(), end->message);
  return end->output;
}

absl::Status Skopeo::Copy(const agent::v1::RegistrySource& source, const std::string& name,
                          const std::string& layout, const std::string& blobs,
                          const Watch& watch) const {
  std::vector<std::string> argv = {"skopeo", "--insecure-policy", "--tmpdir", directory_, "copy",
                                   "--quiet"};
  absl::Status status = AddAccess(source, directory_, "src-", &argv);
  if (!status.ok()) return status;
  argv.insert(argv.end(), {"--dest-shared-blob-dir", blobs, UrlOf(source, name),
                           absl::StrCat("oci:", layout, ":", kPulledTag)});
  const auto end = RunChild({.program = program_,
                             .argv = std::move(argv),
                             .directory = directory_,
                             .max_file_bytes = max_file_bytes_},
                            watch);
  if (!end.ok()) return end.status();
  if (Succeeded(*end)) return absl::OkStatus();
  if (WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGXFSZ) {
    return absl::OutOfRangeError("a layer is larger than images.maxImageSize");
  }
  return SkopeoError(source.host(), end->message);
}

}  // namespace berth
