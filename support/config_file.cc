#include "support/config_file.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/errors.h"
#include "support/text_file.h"

namespace berth {
namespace {

std::string SnakeCase(absl::string_view key) {
  std::string name;
  for (const char c : key) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c))) name += '_';
    name += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return name;
}

// Lines such as "hooks.prologTimeout: 1s..1h" and "firstPort, lastPort: ..." begin with keys.
absl::string_view KeyOf(absl::string_view line) {
  const absl::string_view keys = line.substr(0, line.find(':'));
  return keys.substr(0, keys.find_first_of(", "));
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

// A name, an IPv4 address, or an IPv6 address in brackets, which may have a zone ("%eth0").
bool IsHost(absl::string_view host) {
  const bool in_brackets = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  return !host.empty() && std::all_of(host.begin(), host.end(), [in_brackets](char c) {
    return IsNameCharacter(c) || (in_brackets && (c == ':' || c == '%'));
  });
}

}  // namespace

std::string ConfigPlaces::Of(absl::string_view path) const {
  std::string name = SnakeCase(path);
  while (!name.empty()) {
    const auto found = positions.find(name);
    if (found != positions.end()) {
      return absl::StrCat(file, ":", found->second.line, ":", found->second.column, ": ");
    }
    const size_t end = name.find_last_of(".[");
    name.resize(end == std::string::npos ? 0 : end);
  }
  return "";
}

absl::Status ReadConfigFile(const std::string& path, google::protobuf::Message* message,
                            ConfigPlaces* places) {
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  YamlErrors errors(path);
  const std::vector<YamlNode> documents = ParseYamlTree(*text, &errors);
  if (documents.size() > 1)
    errors.Add(documents[1].position, "expected one document, found a second");
  places->file = path;
  YamlReadOptions options;
  options.positions = &places->positions;
  if (!documents.empty()) ReadYamlNode(documents[0], message, &errors, options);
  return errors.status();
}

absl::Status Located(const absl::Status& status, const ConfigPlaces& places) {
  if (status.ok()) return status;
  std::vector<std::string> lines;
  for (const Violation& violation : ViolationsOf(status)) {
    lines.push_back(absl::StrCat(places.Of(violation.field), violation.field,
                                 violation.field.empty() ? "" : ": ", violation.description));
  }
  if (lines.empty()) {
    const std::string message(status.message());
    for (absl::string_view line : absl::StrSplit(message, '\n')) {
      lines.push_back(absl::StrCat(places.Of(KeyOf(line)), line));
    }
  }
  return absl::Status(status.code(), absl::StrJoin(lines, "\n"));
}

absl::Status CheckAbsolutePath(absl::string_view path) {
  if (path.empty() || path[0] == '/') return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("must be an absolute path, as in /var/lib/", path, ", is ", path));
}

absl::Status CheckServerAddress(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  int port = 0;
  const bool good = colon != absl::string_view::npos && IsHost(address.substr(0, colon)) &&
                    absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 && port <= 65535;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("must be HOST:PORT, as in ", IsHost(address) ? address : "berthd.example",
                   ":7070 or [2001:db8::1]:7070, is ", address.empty() ? "empty" : address));
}

}  // namespace berth
