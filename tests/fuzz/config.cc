// Configuration files of berthd and of the agent. What is read can be written and reads back as the
// same message. A complete configuration can be run.
#include "server/config/config.h"

#include <cstdio>
#include <cstdlib>

#include "clients/agent/agent_config.h"
#include "core/base/check.h"
#include "core/engine/policies.h"
#include "server/config/reload.h"
#include "server/config/scheduling.h"
#include "server/planning/policy_record.h"
#include "support/yaml_proto.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

template <class Message>
void CheckRoundTrip(const Message& message) {
  const std::string written = WriteYaml(message);
  Message again;
  const absl::Status status = ReadYaml(written, "again", &again);
  if (status.ok() && again.DebugString() == message.DebugString()) return;
  std::fprintf(stderr, "%s\nread:\n%s\nwritten:\n%s\nread again:\n%s\n", status.ToString().c_str(),
               message.DebugString().c_str(), written.c_str(), again.DebugString().c_str());
  std::abort();
}

void Server(absl::string_view input) {
  config::v1::Server config;
  if (!ReadYaml(input, "f", &config).ok()) return;
  CheckRoundTrip(config);
  if (!CompleteConfig(config).ok()) return;
  BERTH_CHECK(Policies::Create(PolicyConfigFrom(config)).ok());
  BERTH_CHECK(!PolicyRecordFrom(config).empty());
  JobDefaultsFrom(config);
  config::v1::Server again = config;
  BERTH_CHECK(CompleteConfig(again).ok());
  BERTH_CHECK(DiffConfig(config, again).empty());
  config::v1::Server defaults;
  BERTH_CHECK(CompleteConfig(defaults).ok());
  // The result of a reload is complete, too.
  config::v1::Server reloaded = WithLiveKeys(defaults, config);
  BERTH_CHECK(CompleteConfig(reloaded).ok());
  BERTH_CHECK(Policies::Create(PolicyConfigFrom(reloaded)).ok());
}

void Agent(absl::string_view input) {
  config::v1::Agent config;
  if (!ReadYaml(input, "f", &config).ok()) return;
  CheckRoundTrip(config);
  SetAgentDefaults(&config);
  if (!CheckAgentConfig(config, 1000).ok()) return;
  MakeInventory(config);
}

}  // namespace

void FuzzOne(absl::string_view input) {
  Server(input);
  Agent(input);
}

}  // namespace berth::fuzz
