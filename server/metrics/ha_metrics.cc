#include "server/metrics/ha_metrics.h"

#include <algorithm>
#include <cstdint>

namespace berth {
namespace {

double AsNumber(uint64_t value) { return static_cast<double>(value); }

void AddEtcd(const HighAvailability& ha, FamilyList& out) {
  for (const EtcdMemberStatus& member : ha.etcd_members()) {
    out.Gauge("ha_etcd_up", "1: the member of etcd answers.", member.status.ok() ? 1 : 0,
              {{"endpoint", member.endpoint}});
    if (!member.status.ok()) continue;
    out.Gauge("ha_etcd_database_bytes",
              "Size of the member's database. Its quota is 2 GiB unless configured otherwise.",
              static_cast<double>(member.bytes), {{"endpoint", member.endpoint}});
    out.Gauge("ha_etcd_database_used_bytes", "Of these, in use.",
              static_cast<double>(member.bytes_in_use), {{"endpoint", member.endpoint}});
    out.Gauge("ha_etcd_problems", "Alarms and other problems that the member reports.",
              AsNumber(member.errors.size()), {{"endpoint", member.endpoint}});
  }
}

}  // namespace

void AddHighAvailability(const HighAvailability& ha, FamilyList& out) {
  const MemberStatus status = ha.member().status();
  out.Gauge("ha_leads", "1: this server leads the cluster.", status.leads ? 1 : 0);
  out.Gauge("ha_eligible", "1: it leads, or can take over (berth cluster members says why not).",
            status.not_eligible.empty() ? 1 : 0);
  out.Gauge("ha_term", "Term of the server that leads, as far as this one knows.",
            AsNumber(status.term));
  out.Gauge("ha_etcd_silence_seconds", "Since etcd answered this server last.",
            absl::ToDoubleSeconds(status.etcd_silence));
  out.Gauge("ha_log_bytes", "Of the log in etcd, as far as this server has seen it.",
            AsNumber(status.log_bytes));
  out.Gauge("ha_log_parts", "Parts of the log in etcd; at 20,000 the oldest go.",
            AsNumber(status.log_parts));
  out.Counter("ha_followed_batches", "Batches taken over from leaders.", AsNumber(status.followed));
  out.Counter("ha_compared_batches",
              "Of these, those whose records were compared with the leader's.",
              AsNumber(status.compared));
  out.Counter("ha_differences",
              "Batches that gave another state here than on the leader. Must stay 0: the standby "
              "cannot take over, and one of the two is wrong.",
              AsNumber(status.differences));
  uint64_t newest = 0;
  for (const MemberInfo& info : ha.member().members()) {
    newest = std::max(newest, info.record.applied());
  }
  for (const MemberInfo& info : ha.member().members()) {
    out.Gauge("ha_member_up", "1: the server was heard of in the last 10 seconds.",
              info.alive ? 1 : 0, {{"member", info.name}});
    out.Gauge("ha_member_lag_batches", "Batches that it is behind the one that is furthest.",
              AsNumber(newest - info.record.applied()), {{"member", info.name}});
  }
  out.AddHistogram("ha_confirm_seconds",
                   "Time of the reads of etcd that confirm that this server still leads.",
                   ha.member().confirmer().seconds());
  AddEtcd(ha, out);
}

}  // namespace berth
