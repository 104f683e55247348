#include "server/config/config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/access/access.h"
#include "server/access/caller.h"
#include "server/config/scheduling.h"
#include "server/convert/values.h"
#include "server/validation/findings.h"
#include "server/validation/queue.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/log.h"
#include "support/pki/certificate.h"

namespace berth {
namespace {

using config::v1::Limits;
using config::v1::Server;

constexpr absl::Duration kDefaultStopLease = absl::Minutes(5);
constexpr absl::Duration kDefaultLongestLease = absl::Hours(1);
constexpr absl::Duration kDefaultAuditRetention = absl::Hours(24 * 365);
constexpr absl::Duration kDefaultMinuteRetention = absl::Hours(24 * 30);
constexpr absl::Duration kDefaultUsageRetention = absl::Hours(24 * 400);

void Default(std::string* field, absl::string_view value) {
  if (field->empty()) *field = std::string(value);
}

void FillTexts(Server& config) {
  Default(config.mutable_listen(), kDefaultListen);
  Default(config.mutable_http_listen(), kDefaultHttpListen);
  Default(config.mutable_data_directory(), kDefaultDataDirectory);
  Default(config.mutable_log()->mutable_level(), "info");
  Default(config.mutable_access()->mutable_trust_domain(), kDefaultTrustDomain);
}

void FillDurations(Server& config) {
  if (!config.has_lease()) ToProto(absl::Seconds(15), config.mutable_lease());
  if (!config.has_heartbeat_interval()) {
    ToProto(absl::Seconds(5), config.mutable_heartbeat_interval());
  }
  if (!config.has_fence_margin()) ToProto(absl::Seconds(5), config.mutable_fence_margin());
  if (!config.has_stop_lease()) ToProto(kDefaultStopLease, config.mutable_stop_lease());
  if (!config.has_longest_lease()) {
    ToProto(std::max({kDefaultLongestLease, DurationFrom(config.lease()),
                      DurationFrom(config.stop_lease())}),
            config.mutable_longest_lease());
  }
  if (!config.has_finished_job_ttl()) ToProto(absl::Hours(24), config.mutable_finished_job_ttl());
  if (!config.has_coalescing_window()) {
    ToProto(absl::Milliseconds(1), config.mutable_coalescing_window());
  }
  if (!config.has_history()) ToProto(absl::Hours(24), config.mutable_history());
  if (!config.audit().has_retention()) {
    ToProto(kDefaultAuditRetention, config.mutable_audit()->mutable_retention());
  }
}

void FillUsage(Server& config) {
  config::v1::Usage& usage = *config.mutable_usage();
  if (!usage.has_enabled()) usage.set_enabled(true);
  Default(usage.mutable_account_label(), "account");
  if (!usage.has_minute_retention()) {
    ToProto(kDefaultMinuteRetention, usage.mutable_minute_retention());
  }
  if (!usage.has_retention()) ToProto(kDefaultUsageRetention, usage.mutable_retention());
  if (usage.max_bytes() == 0) usage.set_max_bytes(int64_t{4} << 30);
  if (usage.keys() == 0) usage.set_keys(10'000);
}

void FillHa(Server& config) {
  if (!config.has_ha()) return;
  config::v1::HighAvailability& ha = *config.mutable_ha();
  if (ha.advertise().empty()) ha.set_advertise(config.listen());
  if (ha.name().empty()) ha.set_name(ha.advertise());
  if (!ha.has_lease()) ToProto(absl::Seconds(1), ha.mutable_lease());
}

void FillNumbers(Server& config) {
  if (config.silent_brake() == 0) config.set_silent_brake(0.2);
  if (config.drain_after_refusals() != 0 && config.cordon_after_refusals() == 0) {
    config.set_cordon_after_refusals(config.drain_after_refusals());
    config.clear_drain_after_refusals();
  }
  if (config.cordon_after_refusals() == 0) config.set_cordon_after_refusals(5);
  auto& brake = *config.mutable_health_brake();
  if (!brake.has_percent()) brake.set_percent(10);
  if (!brake.has_least()) brake.set_least(3);
  if (!config.has_fabric_health()) config.set_fabric_health(true);
  Limits& limits = *config.mutable_limits();
  if (limits.tasks_per_job() == 0) limits.set_tasks_per_job(10'000);
  if (limits.jobs_per_call() == 0) limits.set_jobs_per_call(1000);
  if (limits.message_bytes() == 0) limits.set_message_bytes(4 << 20);
  if (limits.active_jobs() == 0) limits.set_active_jobs(2'000'000);
  if (limits.active_tasks() == 0) limits.set_active_tasks(5'000'000);
  if (limits.array_size() == 0) limits.set_array_size(1'000'000);
  if (limits.array_parallelism() == 0) limits.set_array_parallelism(1000);
  if (limits.pending_commands() == 0) limits.set_pending_commands(65'536);
  if (limits.watchers() == 0) limits.set_watchers(1000);
  if (limits.log_followers() == 0) limits.set_log_followers(256);
  if (limits.job_bytes() == 0) limits.set_job_bytes(256 << 10);
  if (limits.execs() == 0) limits.set_execs(64);
  if (config.audit().max_bytes() == 0) config.mutable_audit()->set_max_bytes(256 << 20);
  if (limits.requests_per_user() == 0) limits.set_requests_per_user(512);
  if (limits.submitted_jobs_per_user() == 0) limits.set_submitted_jobs_per_user(16'000);
  if (limits.streams_per_user() == 0) limits.set_streams_per_user(200);
  if (!limits.has_kill_grace()) ToProto(kMaxKillGrace, limits.mutable_kill_grace());
}

void CheckAddress(const FieldPath& path, const std::string& address, Findings& findings) {
  const size_t colon = address.rfind(':');
  int port = -1;
  const bool good = colon != std::string::npos && colon > 0 &&
                    absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 &&
                    port <= 65535;
  if (!good) {
    findings.Invalid(path,
                     absl::StrCat("must be ADDRESS:PORT with port 0..65535, is ", Quoted(address)));
  }
}

void CheckDurations(const FieldPath& root, const Server& config, Findings& findings) {
  const absl::Duration lease = DurationFrom(config.lease());
  CheckDuration({root, "lease"}, config.lease(), absl::Seconds(1), absl::Hours(24), findings);
  CheckDuration({root, "heartbeat_interval"}, config.heartbeat_interval(), absl::Milliseconds(10),
                absl::Hours(8), findings);
  if (DurationFrom(config.heartbeat_interval()) > lease / 3) {
    findings.Invalid({root, "heartbeat_interval"},
                     absl::StrCat("must be at most a third of lease (", absl::FormatDuration(lease),
                                  "), so that one lost heartbeat does no harm"));
  }
  CheckDuration({root, "longest_lease"}, config.longest_lease(), lease, absl::Hours(24), findings);
  CheckDuration({root, "stop_lease"}, config.stop_lease(), absl::ZeroDuration(),
                DurationFrom(config.longest_lease()), findings);
  CheckDuration({root, "fence_margin"}, config.fence_margin(), absl::ZeroDuration(), absl::Hours(1),
                findings);
  CheckDuration({root, "finished_job_ttl"}, config.finished_job_ttl(), absl::ZeroDuration(),
                kMaxDuration, findings);
  CheckDuration({root, "coalescing_window"}, config.coalescing_window(), absl::ZeroDuration(),
                absl::Milliseconds(100), findings);
  CheckDuration({root, "history"}, config.history(), absl::ZeroDuration(), kMaxDuration, findings);
  const FieldPath audit(root, "audit");
  CheckDuration({audit, "retention"}, config.audit().retention(), absl::Hours(1), kMaxDuration,
                findings);
  CheckRange({audit, "max_bytes"}, config.audit().max_bytes(), int64_t{1} << 20, int64_t{1} << 40,
             findings);
}

void CheckUsage(const FieldPath& root, const config::v1::Usage& usage, Findings& findings) {
  const FieldPath path(root, "usage");
  CheckDuration({path, "minute_retention"}, usage.minute_retention(), absl::Hours(1), kMaxDuration,
                findings);
  CheckDuration({path, "retention"}, usage.retention(), absl::Hours(24), kMaxDuration, findings);
  CheckRange({path, "max_bytes"}, usage.max_bytes(), int64_t{16} << 20, int64_t{1} << 40, findings);
  CheckRange({path, "keys"}, usage.keys(), 100, 1'000'000, findings);
  if (!IsLabelKey(usage.account_label())) {
    findings.Invalid({path, "account_label"}, absl::StrCat("must be the key of a label, is ",
                                                           Quoted(usage.account_label())));
  }
}

void CheckLimits(const FieldPath& root, const Limits& limits, Findings& findings) {
  const FieldPath path(root, "limits");
  CheckRange({path, "tasks_per_job"}, limits.tasks_per_job(), 1, 30'000, findings);
  CheckRange({path, "jobs_per_call"}, limits.jobs_per_call(), 1, 1000, findings);
  CheckRange({path, "message_bytes"}, limits.message_bytes(), 64 << 10, 64 << 20, findings);
  CheckRange({path, "active_jobs"}, limits.active_jobs(), 1, 100'000'000, findings);
  CheckRange({path, "active_tasks"}, limits.active_tasks(), 1, 1'000'000'000, findings);
  CheckRange({path, "array_size"}, limits.array_size(), 1, 100'000'000, findings);
  CheckRange({path, "array_parallelism"}, limits.array_parallelism(), 1, 100'000, findings);
  CheckRange({path, "pending_commands"}, limits.pending_commands(), 1000, 10'000'000, findings);
  CheckRange({path, "watchers"}, limits.watchers(), 1, 100'000, findings);
  CheckRange({path, "log_followers"}, limits.log_followers(), 1, 100'000, findings);
  CheckRange({path, "execs"}, limits.execs(), 1, 10'000, findings);
  CheckRange({path, "connections"}, limits.connections(), 0, 10'000'000, findings);
  CheckRange({path, "connections_per_address"}, limits.connections_per_address(), 0, 10'000'000,
             findings);
  CheckDuration({path, "kill_grace"}, limits.kill_grace(), absl::ZeroDuration(), kMaxKillGrace,
                findings);
  CheckRange({path, "requests_per_user"}, limits.requests_per_user(), 1, 1'000'000, findings);
  CheckRange({path, "submitted_jobs_per_user"}, limits.submitted_jobs_per_user(), 1, 10'000'000,
             findings);
  CheckRange({path, "streams_per_user"}, limits.streams_per_user(), 1, 100'000, findings);
  CheckRange({path, "requests_per_second_per_user"}, limits.requests_per_second_per_user(), 0,
             10'000'000, findings);
  CheckRange({path, "active_jobs_per_user"}, limits.active_jobs_per_user(), 0, 100'000'000,
             findings);
  CheckRange({path, "job_bytes"}, limits.job_bytes(), 1 << 10, 16 << 20, findings);
}

// Plain HTTP, which asks nobody who they are.
void CheckHttpListen(const FieldPath& path, const std::string& address, Findings& findings) {
  if (IsLoopbackAddress(address)) return;
  findings.Invalid(path, absl::StrCat(Quoted(address),
                                      " can be reached from other machines, and HTTP has no "
                                      "certificates here: listen on 127.0.0.1, behind a TLS proxy "
                                      "that asks for them (docs/operators/monitoring.md)"));
}

void CheckListen(const FieldPath& root, const Server& config, Findings& findings) {
  CheckAddress({root, "listen"}, config.listen(), findings);
  const TlsFiles tls = TlsFilesOf(config.tls());
  const bool whole = !tls.certificate.empty() && !tls.key.empty() && !tls.ca.empty();
  if (!tls.empty() && !whole) {
    findings.Invalid({root, "tls"}, "needs all of certificate, key and ca");
  }
  if (!IsLoopbackAddress(config.listen()) && tls.empty()) {
    findings.Invalid({root, "listen"},
                     absl::StrCat(Quoted(config.listen()),
                                  " can be reached from other machines; that needs tls "
                                  "(certificate, key and ca)"));
  }
  if (config.http_listen() != kNoHttp) {
    CheckAddress({root, "http_listen"}, config.http_listen(), findings);
    CheckHttpListen({root, "http_listen"}, config.http_listen(), findings);
  }
}

void CheckPaths(const FieldPath& root, const Server& config, Findings& findings) {
  const auto check = [&findings](const FieldPath& field, const std::string& path) {
    const absl::Status status = CheckAbsolutePath(path);
    if (!status.ok()) findings.Invalid(field, std::string(status.message()));
  };
  check({root, "data_directory"}, config.data_directory());
  check({root, "backup_directory"}, config.backup_directory());
  const FieldPath log(root, "log"), tls(root, "tls");
  check({log, "file"}, config.log().file());
  check({tls, "certificate"}, config.tls().certificate());
  check({tls, "key"}, config.tls().key());
  check({tls, "ca"}, config.tls().ca());
}

void CheckAccessNames(const FieldPath& path, absl::string_view field,
                      const google::protobuf::RepeatedPtrField<std::string>& names,
                      Findings& findings) {
  for (int i = 0; i < names.size(); ++i) {
    if (IsAccessName(names.Get(i))) continue;
    findings.Invalid({path, field, i},
                     absl::StrCat("must be 1 to ", AccessRules::kMaxName,
                                  " bytes without quotes, backslashes and control characters"));
  }
}

void CheckRunAs(const FieldPath& root, const Server& config, Findings& findings) {
  for (int i = 0; i < config.run_as_size(); ++i) {
    const config::v1::RunAs& rule = config.run_as(i);
    const FieldPath path(root, "run_as", i);
    if (!IsUserName(rule.user()) || rule.user().empty()) {
      findings.Invalid({path, "user"},
                       absl::StrCat("must be a user's name, is ", Quoted(rule.user())));
    }
    if (rule.certificates().empty() && rule.owners().empty() && !rule.without_tls()) {
      findings.Invalid(path, "names no client: set owners, certificates or without_tls");
    }
    if (rule.without_tls() && !TlsFilesOf(config.tls()).empty()) {
      findings.Invalid({path, "without_tls"}, "has no effect: with tls, every client uses TLS");
    }
    for (int c = 0; c < rule.certificates_size(); ++c) {
      if (rule.certificates(c).empty())
        findings.Invalid({path, "certificates", c}, "must not be empty");
    }
    CheckAccessNames(path, "owners", rule.owners(), findings);
  }
}

void CheckAccess(const FieldPath& root, const Server& config, Findings& findings) {
  const config::v1::Access& access = config.access();
  const FieldPath path(root, "access");
  if (!ParseSpiffeId(absl::StrCat("spiffe://", access.trust_domain(), "/user/a")).ok()) {
    findings.Invalid({path, "trust_domain"},
                     absl::StrCat("must be lower-case letters, digits, '.', '-' and '_', is ",
                                  Quoted(access.trust_domain())));
  }
  for (int i = 0; i < access.certificates_size(); ++i) {
    const FieldPath rule(path, "certificates", i);
    if (access.certificates(i).field() == config::v1::CertificateRule::FIELD_UNSPECIFIED) {
      findings.Invalid({rule, "field"}, "required: the field with the user's name");
    }
    CheckEnum({rule, "field"}, access.certificates(i).field(), findings);
    CheckAccessNames(rule, "groups", access.certificates(i).groups(), findings);
  }
  const FieldPath administrators(path, "administrators");
  CheckAccessNames(administrators, "users", access.administrators().users(), findings);
  CheckAccessNames(administrators, "groups", access.administrators().groups(), findings);
  const bool tls = !TlsFilesOf(config.tls()).empty();
  for (const auto& [field, authorities] :
       {std::pair{"user_authorities", &access.user_authorities()},
        {"node_authorities", &access.node_authorities()}}) {
    if (authorities->empty()) continue;
    const absl::Status file = CheckAbsolutePath(*authorities);
    if (!file.ok()) findings.Invalid({path, field}, std::string(file.message()));
    if (!tls) findings.Invalid({path, field}, "has no effect without tls");
  }
  if (access.node_identities() && !tls) {
    findings.Invalid({path, "node_identities"}, "has no effect without tls");
  }
  if (!access.has_without_tls()) return;
  const FieldPath local(path, "without_tls");
  if (!IsAccessName(access.without_tls().user())) {
    findings.Invalid({local, "user"}, absl::StrCat("must be a user's name, is ",
                                                   Quoted(access.without_tls().user())));
  }
  CheckAccessNames(local, "groups", access.without_tls().groups(), findings);
  if (tls) {
    findings.Invalid(local, "has no effect: with tls, every client uses TLS");
  }
}

void CheckHa(const FieldPath& root, const Server& config, Findings& findings) {
  if (!config.has_ha()) return;
  const config::v1::HighAvailability& ha = config.ha();
  const FieldPath path(root, "ha");
  const TlsFiles tls = TlsFilesOf(ha.tls());
  if (ha.etcd().empty()) findings.Invalid({path, "etcd"}, "required: HOST:PORT of etcd's members");
  for (int i = 0; i < ha.etcd_size(); ++i) {
    const FieldPath member(path, "etcd", i);
    CheckAddress(member, ha.etcd(i), findings);
    if (!tls.empty() || IsLoopbackAddress(ha.etcd(i))) continue;
    findings.Invalid(member, absl::StrCat(Quoted(ha.etcd(i)),
                                          " is on another machine; that needs ha.tls "
                                          "(certificate, key and ca)"));
  }
  if (!tls.empty() && (tls.certificate.empty() || tls.key.empty() || tls.ca.empty())) {
    findings.Invalid({path, "tls"}, "needs all of certificate, key and ca");
  }
  CheckAddress({path, "advertise"}, ha.advertise(), findings);
  if (absl::EndsWith(ha.advertise(), ":0") || absl::StartsWith(ha.advertise(), "0.0.0.0:")) {
    findings.Invalid(
        {path, "advertise"},
        absl::StrCat("must be an address that others can connect to, is ", Quoted(ha.advertise())));
  }
  if (!IsAccessName(ha.name()) || absl::StrContains(ha.name(), '/')) {
    findings.Invalid({path, "name"},
                     absl::StrCat("must be a name without '/', is ", Quoted(ha.name())));
  }
  CheckDuration({path, "lease"}, ha.lease(), absl::Milliseconds(200), absl::Minutes(1), findings);
}

}  // namespace

absl::StatusOr<Server> ReadConfig(const std::string& path, ConfigPlaces* places) {
  Server config;
  if (path.empty()) return config;
  ConfigPlaces unwanted;
  ConfigPlaces* const found = places != nullptr ? places : &unwanted;
  if (absl::Status status = ReadConfigFile(path, &config, found); !status.ok()) return status;
  return config;
}

absl::Status CompleteConfig(Server& config) {
  FillTexts(config);
  FillDurations(config);
  FillNumbers(config);
  FillUsage(config);
  FillHa(config);
  FillScheduling(*config.mutable_scheduling());
  Findings findings;
  const FieldPath root;
  CheckListen(root, config, findings);
  CheckPaths(root, config, findings);
  CheckDurations(root, config, findings);
  CheckUsage(root, config.usage(), findings);
  CheckLimits(root, config.limits(), findings);
  CheckRunAs(root, config, findings);
  CheckAccess(root, config, findings);
  CheckHa(root, config, findings);
  CheckQueueDefaults({root, "job_defaults"}, config.job_defaults(), findings);
  if (!(config.silent_brake() > 0 && config.silent_brake() <= 1)) {
    findings.Invalid({root, "silent_brake"},
                     absl::StrCat("must be above 0 and at most 1, is ", config.silent_brake()));
  }
  const FieldPath brake(root, "health_brake");
  CheckRange({brake, "percent"}, config.health_brake().percent(), 0, 100, findings);
  CheckRange({brake, "least"}, config.health_brake().least(), 0, 1'000'000, findings);
  CheckRange({root, "cordon_after_refusals"}, config.cordon_after_refusals(), 1, 1000, findings);
  if (config.drain_after_refusals() != 0) {
    findings.Invalid({root, "drain_after_refusals"},
                     "is the older name of cordon_after_refusals: set only one of them");
  }
  const FieldPath log(root, "log");
  if (!IsLogLevel(config.log().level())) {
    findings.Invalid({log, "level"}, absl::StrCat("must be trace, debug, info, warn or error, is ",
                                                  Quoted(config.log().level())));
  }
  CheckScheduling({root, "scheduling"}, config.scheduling(), findings);
  return findings.ToStatus();
}

TlsFiles TlsFilesOf(const config::v1::Tls& tls) { return {tls.certificate(), tls.key(), tls.ca()}; }

}  // namespace berth
