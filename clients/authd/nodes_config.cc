// The section `nodes` of the configuration.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/authd/authd_config.h"
#include "support/config_file.h"
#include "support/proto_time.h"
#include "support/server_list.h"
#include "support/tls.h"

namespace berth {
namespace {

bool IsPath(const std::string& path) { return !path.empty() && CheckAbsolutePath(path).ok(); }

}  // namespace

void CompleteNodesConfig(auth::v1::Authd* config, std::vector<std::string>* problems) {
  auth::v1::Nodes* nodes = config->mutable_nodes();
  if (!nodes->has_lifetime()) ToProto(kNodeCertificateLifetime, nodes->mutable_lifetime());
  const auto check = [&](bool ok, absl::string_view field, absl::string_view problem) {
    if (!ok) problems->push_back(absl::StrCat("nodes.", field, ": ", problem));
  };
  const bool unix_socket = absl::StartsWith(nodes->listen(), "unix:");
  check(!nodes->listen().empty() && !unix_socket && CheckServerAddress(nodes->listen()).ok(),
        "listen", "must be address:port, such as 0.0.0.0:7081");
  for (const auto& [field, path] : {std::pair{"certificate", &nodes->certificate()},
                                    {"key", &nodes->key()},
                                    {"authority", &nodes->authority()},
                                    {"authority_key", &nodes->authority_key()}}) {
    check(IsPath(*path), field, "must be the absolute path of a PEM file");
  }
  check(nodes->authority().empty() || nodes->authority() != config->certificate(), "authority",
        "must not be the authority of users, which berthd takes for no node");
  const absl::Duration lifetime = DurationFrom(nodes->lifetime());
  check(lifetime >= kShortestNodeLifetime && lifetime <= kLongestNodeLifetime, "lifetime",
        "must be 1m..168h");
  check(!nodes->server().empty() && CheckServerList(nodes->server()).ok(), "server",
        "must be host:port of berthd, or several with commas");
  const config::v1::Tls& tls = nodes->tls();
  const bool none = tls.certificate().empty() && tls.key().empty() && tls.ca().empty();
  check(!none || AreLoopback(nodes->server()), "tls", "required unless berthd is on loopback");
  check(none || (IsPath(tls.certificate()) && IsPath(tls.key()) && IsPath(tls.ca())), "tls",
        "must have the absolute paths of certificate, key and ca");
}

}  // namespace berth
