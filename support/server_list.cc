#include "support/server_list.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/config_file.h"
#include "support/tls.h"

namespace berth {

std::vector<std::string> ServersOf(absl::string_view list) {
  std::vector<std::string> servers;
  for (const absl::string_view server : absl::StrSplit(list, ','))
    servers.emplace_back(absl::StripAsciiWhitespace(server));
  return servers;
}

absl::Status CheckServerList(absl::string_view list) {
  const std::vector<std::string> servers = ServersOf(list);
  std::set<std::string> seen;
  for (const std::string& server : servers) {
    if (absl::Status status = CheckServerAddress(server); !status.ok()) return status;
    if (!seen.insert(server).second)
      return absl::InvalidArgumentError(absl::StrCat("names ", server, " twice"));
  }
  if (servers.size() <= kMaxServers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("names ", servers.size(), " servers, and may name ", kMaxServers));
}

bool AreLoopback(absl::string_view list) {
  const std::vector<std::string> servers = ServersOf(list);
  return std::all_of(servers.begin(), servers.end(),
                     [](const std::string& server) { return IsLoopbackAddress(server); });
}

}  // namespace berth
