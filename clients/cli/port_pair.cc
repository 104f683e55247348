#include "clients/cli/port_pair.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

constexpr int kMaxPort = 65'535;

bool ParsePort(const std::string& text, int least, int* port) {
  return absl::SimpleAtoi(text, port) && *port >= least && *port <= kMaxPort;
}

}  // namespace

absl::StatusOr<PortPair> ParsePortPair(const std::string& text) {
  const size_t colon = text.find(':');
  PortPair pair;
  const std::string remote = colon == std::string::npos ? text : text.substr(colon + 1);
  bool ok = ParsePort(remote, 1, &pair.remote);
  pair.local = colon == std::string::npos ? pair.remote : 0;
  if (colon != std::string::npos && colon > 0)
    ok = ParsePort(text.substr(0, colon), 0, &pair.local) && ok;
  if (ok) return pair;
  return absl::InvalidArgumentError(
      absl::StrCat("expected ports such as 8888, 9000:8888 or 0:8888, got \"", text, "\""));
}

bool LooksLikePorts(const std::string& text) {
  return text.find_first_not_of("0123456789:") == std::string::npos;
}

}  // namespace berth
