#include "server/config/config.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "server/convert/values.h"
#include "support/errors.h"

namespace berth::testing {
namespace {

absl::Status Complete(const std::string& yaml) {
  const std::string path = std::tmpnam(nullptr);
  std::ofstream(path) << yaml;
  absl::StatusOr<config::v1::Server> config = ReadConfig(path);
  std::remove(path.c_str());
  if (!config.ok()) return config.status();
  return CompleteConfig(*config);
}

}  // namespace

TEST_CASE("config: an empty configuration gives the documented defaults") {
  absl::StatusOr<config::v1::Server> config = ReadConfig("");
  REQUIRE(config.ok());
  REQUIRE(CompleteConfig(*config).ok());
  CHECK(config->listen() == "127.0.0.1:7070");
  CHECK(config->http_listen() == "127.0.0.1:7071");
  CHECK(config->data_directory() == "/var/lib/berth");
  CHECK(DurationFrom(config->lease()) == absl::Seconds(15));
  CHECK(DurationFrom(config->coalescing_window()) == absl::Milliseconds(1));
  CHECK(config->limits().tasks_per_job() == 10'000);
  CHECK(config->limits().message_bytes() == 4 << 20);
  CHECK(config->silent_brake() == 0.2);
  CHECK(config->health_brake().percent() == 10);
  CHECK(config->health_brake().least() == 3);
  CHECK(config->usage().enabled());
  CHECK(config->usage().account_label() == "account");
  CHECK(DurationFrom(config->usage().minute_retention()) == absl::Hours(24 * 30));
  CHECK(DurationFrom(config->usage().retention()) == absl::Hours(24 * 400));
  CHECK(config->usage().keys() == 10'000);
  // Completing twice changes nothing.
  const std::string once = config->SerializeAsString();
  REQUIRE(CompleteConfig(*config).ok());
  CHECK(config->SerializeAsString() == once);
}

TEST_CASE("config: each wrong value is refused with its reason") {
  const auto [yaml, words] = GENERATE(table<std::string, std::string>({
      {"listen: 0.0.0.0:7070",
       "listen: \"0.0.0.0:7070\" can be reached from other machines; that needs tls"},
      {"listen: 127.evil.example:7070", "can be reached from other machines"},
      {"listen: localhost", "listen: must be ADDRESS:PORT with port 0..65535, is \"localhost\""},
      {"httpListen: 127.0.0.1:99999", "http_listen: must be ADDRESS:PORT"},
      {"tls: {certificate: a.pem}", "tls: needs all of certificate, key and ca"},
      {"usage: {minuteRetention: 1m}", "usage.minute_retention"},
      {"usage: {retention: 1h}", "usage.retention"},
      {"usage: {maxSize: 1Mi}", "usage.max_bytes"},
      {"usage: {keys: 99}", "usage.keys"},
      {"usage: {accountLabel: 'a b'}", "usage.account_label: must be the key of a label"},
      {"access: {trustDomain: Prod}", "access.trust_domain: must be lower-case letters"},
      {"access: {trustDomain: a/b}", "access.trust_domain: must be lower-case letters"},
      {"access: {withoutTls: {groups: [a]}}",
       "access.without_tls.user: must be a user's name, is \"\""},
      {"access: {withoutTls: {user: ada, groups: ['a\"b']}}",
       "access.without_tls.groups[0]: must be 1 to 253 bytes without quotes"},
      {"access: {certificates: [{prefix: x}]}", "access.certificates[0].field"},
      {"access: {certificates: [{field: EMAIL, groups: ['']}]}",
       "access.certificates[0].groups[0]: must be 1 to 253 bytes"},
      {"access: {withoutTls: {user: a}}\ntls: {certificate: /c, key: /k, ca: /a}",
       "access.without_tls: has no effect: with tls, every client uses TLS"},
      {"lease: 3s\nheartbeatInterval: 2s",
       "heartbeat_interval: must be at most a third of lease (3s)"},
      {"coalescingWindow: 1s", "coalescing_window: must be 0..100ms, is 1s"},
      {"limits: {jobsPerCall: 1001}", "limits.jobs_per_call: must be 1..1000, is 1001"},
      {"limits: {tasksPerJob: -1}", "limits.tasks_per_job: must be 1..30000, is -1"},
      {"dataDirectory: var/data",
       "data_directory: must be an absolute path, as in /var/lib/var/data, is var/data"},
      {"backupDirectory: backups", "backup_directory: must be an absolute path"},
      {"log: {file: berthd.log}", "log.file: must be an absolute path"},
      {"tls: {certificate: c, key: /k, ca: /a}", "tls.certificate: must be an absolute path"},
      {"tls: {certificate: /c, key: k, ca: /a}", "tls.key: must be an absolute path"},
      {"tls: {certificate: /c, key: /k, ca: a}", "tls.ca: must be an absolute path"},
      {"stopLease: 2h\nlongestLease: 1h", "stop_lease"},
      {"longestLease: 5s", "longest_lease"},
      {"silentBrake: 1.5", "silent_brake: must be above 0 and at most 1, is 1.5"},
      {"healthBrake: {percent: 101}", "health_brake.percent: must be 0..100, is 101"},
      {"healthBrake: {least: -1}", "health_brake.least: must be 0..1000000, is -1"},
      {"cordonAfterRefusals: -2", "cordon_after_refusals: must be 1..1000, is -2"},
      {"drainAfterRefusals: -2", "cordon_after_refusals: must be 1..1000, is -2"},
      {"drainAfterRefusals: 3\ncordonAfterRefusals: 4",
       "drain_after_refusals: is the older name of cordon_after_refusals: set only one of them"},
      {"lese: 3s", "lease"},
      {"log: {level: loud}", "log.level: must be trace, debug, info, warn or error, is \"loud\""},
      {"scheduling: {actions: [allocate, conquer]}", "scheduling: unknown action \"conquer\""},
      {"scheduling: {scores: [best_fit, best_fit]}",
       "scheduling: score \"best_fit\" is listed twice"},
      {"scheduling: {eviction: {maxVictims: 0}}",
       "scheduling.eviction.max_victims: must be 1..1000000, is 0"},
      {"scheduling: {backfill: {reservations: -1}}",
       "scheduling.backfill.reservations: must be 0..100000, is -1"},
      {"scheduling: {fairShare: {usageWeight: 1001}}",
       "scheduling.fair_share.usage_weight: must be 0..1000, is 1001"},
      {"scheduling: {preemptibleBelowPriority: 2000000}",
       "scheduling.preemptible_below_priority: must be -1000000..1000001, is 2000000"},
      {"scheduling: {topology: {gangs: {highestTier: 101}}}",
       "scheduling.topology.gangs.highest_tier: must be 0..100, is 101"},
  }));
  const absl::Status status = Complete(yaml);
  INFO(status);
  CHECK(absl::IsInvalidArgument(status));
  CHECK(status.message().find(words) != absl::string_view::npos);
}

TEST_CASE("config: the older name of cordonAfterRefusals is still read") {
  CHECK(Complete("drainAfterRefusals: 3").ok());
}

TEST_CASE("config: all violations are reported at once") {
  const absl::Status status = Complete("listen: nowhere\nsilentBrake: 2\ncoalescingWindow: 1s\n");
  CHECK(ViolationsOf(status).size() >= 3);
}

TEST_CASE("config: with TLS it may listen beyond loopback, and a missing file is named") {
  CHECK(Complete("listen: 0.0.0.0:7070\ntls: {certificate: /c, key: /k, ca: /a}").ok());
  // A missing file is a configuration error: berthd exits with 2 and is not restarted.
  CHECK(absl::IsInvalidArgument(ReadConfig("/no/such/berthd.yaml").status()));
  const auto credentials = MakeServerCredentials({"/no/cert.pem", "/no/key.pem", "/no/ca.pem"});
  CHECK(credentials.status().message() == "cannot read /no/cert.pem: No such file or directory");
}

TEST_CASE("config: loopback addresses are recognized") {
  for (const char* yes : {"127.0.0.1:1", "localhost:1", "[::1]:1", "127.8.8.8:0", "unix:/x"}) {
    CHECK(IsLoopbackAddress(yes));
  }
  for (const char* no : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "127.a.example:1", ":7070"}) {
    CHECK_FALSE(IsLoopbackAddress(no));
  }
}

}  // namespace berth::testing
