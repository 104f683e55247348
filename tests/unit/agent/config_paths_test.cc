// Paths in the agent's configuration: a service manager does not start the agent in the directory
// of a shell.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "clients/agent/agent_config.h"

namespace berth::testing {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("configuration: every path is absolute") {
  config::v1::Agent config;
  SetAgentDefaults(&config);
  config.mutable_log()->set_file("agent.log");
  config.mutable_tls()->set_certificate("agent.pem");
  config.mutable_tls()->set_key("agent.key");
  config.mutable_tls()->set_ca("ca.pem");
  config.mutable_discovery()->set_topology_file("topology.xml");
  const std::string problems(CheckAgentConfig(config, 1000).message());
  for (const char* key :
       {"log.file", "tls.certificate", "tls.key", "tls.ca", "discovery.topologyFile"}) {
    CHECK_THAT(problems, Contains(absl::StrCat(key, ": must be an absolute path")));
  }
}

}  // namespace
}  // namespace berth::testing
