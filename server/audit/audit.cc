#include "server/audit/audit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/log.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr absl::Duration kComplainEvery = absl::Minutes(1);

std::string ChainDirectory(const std::string& directory, const char* name) {
  return directory.empty() ? "" : absl::StrCat(directory, "/", name);
}

bool ConcernsJob(const v1::AuditEntry& entry, const std::string& job) {
  if (entry.target() == absl::StrCat("job/", job)) return true;
  for (const v1::AuditChange& change : entry.changes()) {
    if (change.object() != "job") continue;
    const auto& names = change.names();
    if (std::find(names.begin(), names.end(), job) != names.end()) return true;
  }
  return false;
}

}  // namespace

bool Matches(const AuditFilter& filter, const v1::AuditEntry& entry) {
  const absl::Time time = TimeFrom(entry.time());
  if (time < filter.since || time >= filter.until) return false;
  if (!filter.actor.empty() && entry.actor().name() != filter.actor) return false;
  return filter.job.empty() || ConcernsJob(entry, filter.job);
}

Audit::Audit(const std::string& directory, AuditLimits limits, const Store* store,
             Executor* executor, Clock* clock)
    : writes_(!directory.empty()),
      store_(store),
      executor_(executor),
      clock_(clock),
      commands_(ChainDirectory(directory, "commands"), limits),
      refusals_(ChainDirectory(directory, "refused"), limits),
      trail_(store, &commands_, executor, clock, store->LastSequence()),
      refused_(&refusals_, clock) {}

void Audit::Tick() {
  if (!writes_ || ticking_.exchange(true)) return;
  executor_->Run([this] {
    ticking_ = false;
    WriteAll();
  });
}

void Audit::WriteAll(uint64_t durable) {
  const absl::Time now = clock_->Now();
  absl::Status status = trail_.Write(durable);
  status.Update(refused_.Write());
  status.Update(commands_.Tidy(now, status.ok() ? trail_.done() : 0));
  status.Update(refusals_.Tidy(now));
  if (!status.ok()) Complain(status);
}

void Audit::Complain(const absl::Status& status) {
  const absl::Time now = clock_->Now();
  if (now - complained_ < kComplainEvery) return;
  complained_ = now;
  LogWarn("the audit cannot be written; it continues when it can", {{"error", status}});
}

void Audit::Ask(bool refused, Query call) {
  executor_->Run([this, refused, call = std::move(call)] {
    // The caller may have the answer to a command of which the listener is not told yet.
    if (writes_) WriteAll(store_->LastSequence());
    call(refused ? refusals_ : commands_);
  });
}

}  // namespace berth
