#include "clients/agent/images/reference.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/agent/images/blob.h"

namespace berth {
namespace {

constexpr char kDockerHub[] = "docker.io";
constexpr size_t kMaxTagBytes = 128;
constexpr size_t kDigestDigits = 64;

bool IsLowerAlnum(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

// Lower-case letters and digits, with '.', '_' and '-' between them.
bool IsPathPart(absl::string_view part) {
  return !part.empty() && IsLowerAlnum(part.front()) && IsLowerAlnum(part.back()) &&
         std::all_of(part.begin(), part.end(),
                     [](char c) { return IsLowerAlnum(c) || c == '.' || c == '_' || c == '-'; });
}

bool IsPath(absl::string_view path) {
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (!IsPathPart(part)) return false;
  }
  return true;
}

bool IsTag(absl::string_view tag) {
  return !tag.empty() && tag.size() <= kMaxTagBytes && tag[0] != '.' && tag[0] != '-' &&
         std::all_of(tag.begin(), tag.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

bool IsHost(absl::string_view host) {
  const size_t colon = host.find(':');
  const absl::string_view name = host.substr(0, colon);
  const absl::string_view port =
      colon == absl::string_view::npos ? absl::string_view("0") : host.substr(colon + 1);
  return !name.empty() && !port.empty() && port.size() <= 5 && name[0] != '-' && name[0] != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '-'; }) &&
         std::all_of(port.begin(), port.end(), [](char c) { return absl::ascii_isdigit(c); });
}

bool LooksLikeHost(absl::string_view part) {
  return part == "localhost" || absl::StrContains(part, '.') || absl::StrContains(part, ':');
}

absl::Status NotAName(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is no name of an image in a registry (HOST/PATH:TAG)"));
}

}  // namespace

bool IsDigest(absl::string_view digest) {
  return absl::ConsumePrefix(&digest, kDigestPrefix) && digest.size() == kDigestDigits &&
         std::all_of(digest.begin(), digest.end(),
                     [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
}

absl::StatusOr<ImageReference> ParseImageReference(absl::string_view name,
                                                   const std::string& default_host) {
  ImageReference reference;
  absl::string_view rest = name;
  if (const size_t at = rest.find('@'); at != absl::string_view::npos) {
    reference.digest = std::string(rest.substr(at + 1));
    rest = rest.substr(0, at);
    if (!IsDigest(reference.digest)) return NotAName(name);
  }
  const size_t slash = rest.find('/');
  if (slash != absl::string_view::npos && LooksLikeHost(rest.substr(0, slash))) {
    reference.host = std::string(rest.substr(0, slash));
    rest = rest.substr(slash + 1);
  }
  if (const size_t colon = rest.rfind(':'); colon != absl::string_view::npos) {
    reference.tag = std::string(rest.substr(colon + 1));
    rest = rest.substr(0, colon);
    if (!IsTag(reference.tag)) return NotAName(name);
  }
  if (!IsPath(rest) || (!reference.host.empty() && !IsHost(reference.host))) return NotAName(name);
  if (reference.host.empty()) {
    if (default_host.empty()) {
      return absl::NotFoundError(absl::StrCat(name, " names no registry"));
    }
    reference.host = default_host;
  }
  reference.path = std::string(rest);
  if (reference.host == kDockerHub && !absl::StrContains(rest, '/')) {
    reference.path = absl::StrCat("library/", rest);
  }
  if (!reference.digest.empty()) {
    reference.tag.clear();
  } else if (reference.tag.empty()) {
    reference.tag = "latest";
  }
  return reference;
}

std::string TextOf(const ImageReference& reference) {
  return absl::StrCat(reference.host, "/", reference.path,
                      reference.digest.empty() ? absl::StrCat(":", reference.tag)
                                               : absl::StrCat("@", reference.digest));
}

}  // namespace berth
