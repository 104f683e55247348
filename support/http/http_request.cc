#include "support/http/http_request.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

constexpr absl::string_view kLineEnd = "\r\n";
constexpr absl::string_view kHeadEnd = "\r\n\r\n";

bool TellsOfBody(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return false;
  const absl::string_view name = line.substr(0, colon);
  if (absl::EqualsIgnoreCase(name, "transfer-encoding")) return true;
  return absl::EqualsIgnoreCase(name, "content-length") &&
         absl::StripAsciiWhitespace(line.substr(colon + 1)) != "0";
}

}  // namespace

absl::string_view HttpHeadOf(absl::string_view received) {
  const size_t end = received.find(kHeadEnd);
  return end == absl::string_view::npos ? "" : received.substr(0, end + kHeadEnd.size());
}

std::optional<HttpRequest> ParseHttpHead(absl::string_view head) {
  const std::vector<absl::string_view> lines = absl::StrSplit(head, kLineEnd);
  const std::vector<absl::string_view> words = absl::StrSplit(lines[0], ' ');
  if (words.size() != 3 || words[0].empty() || !absl::StartsWith(words[1], "/") ||
      !absl::StartsWith(words[2], "HTTP/1.")) {
    return std::nullopt;
  }
  HttpRequest request{.method = words[0], .path = words[1].substr(0, words[1].find('?'))};
  for (size_t i = 1; i < lines.size(); ++i) request.has_body |= TellsOfBody(lines[i]);
  return request;
}

}  // namespace berth
