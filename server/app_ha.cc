// App: its part in a cluster with high availability.
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "server/app_parts.h"
#include "storage/keys.h"
#include "support/clock.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr absl::Duration kDrainPatience = absl::Seconds(5);
constexpr absl::Duration kDrainPoll = absl::Milliseconds(1);

}  // namespace

void App::Parts::JoinCluster() {
  ha_->Start({.follow =
                  [this](const Batch& batch) {
                    TakeOverRequests(batch);
                    return loop_->Follow(batch);
                  },
              .lead = [this](uint64_t term) { LeadCluster(term); },
              .loop_silence = [this] { return LoopSilence(); }});
}

// What the leader answered before, so that repeated requests get the same answer.
void App::Parts::TakeOverRequests(const Batch& batch) {
  for (const Record& record : batch.records) {
    if (record.kind != RecordKind::kRequest || !record.value.has_value()) continue;
    absl::StatusOr<StoredRequest> request = DecodeRequestRecord(record.key, *record.value, nullptr);
    if (request.ok()) requests_.Restore(*std::move(request));
  }
}

// As at a start with a loaded store, but that nothing is loaded.
void App::Parts::LeadCluster(uint64_t term) {
  const absl::StatusOr<GrantedLease> granted = ReadGrantedLease(*store_);
  if (!granted.ok()) return ExitOnStoreFailure(granted.status());
  gateway_->TakeOver();
  loop_->AcceptCommands();
  leases_->Start(*granted);
  if (!granted->restored) loop_->ReleasePolicies();
  if (absl::Status made = MakeDefaultQueue(*loop_); !made.ok()) {
    LogError("the default queue cannot be made", {{"error", made}});
  }
  loop_->Lead();
  WarnWithoutRules();
  LogInfo("berthd leads", {{"term", term}, {"revision", loop_->DurableRevision()}});
}

// A standby is ready to take over. Clients need not know which server leads.
HttpAnswer App::Parts::StandbyReadiness() const {
  const MemberStatus status = ha_->member().status();
  if (!status.not_eligible.empty()) {
    return {503, absl::StrCat("standby, which cannot take over: ", status.not_eligible, "\n")};
  }
  if (!status.etcd.ok()) {
    return {503, absl::StrCat("etcd does not answer: ", status.etcd.message(), "\n")};
  }
  return {200, absl::StrCat("ready: standby of ",
                            status.leader.empty() ? "no leader yet" : status.leader, "\n")};
}

absl::Duration App::Parts::LoopSilence() const {
  const int64_t seen = loop_seen_nanos_.load();
  return seen == 0 ? absl::ZeroDuration() : SystemClock().Steady() - absl::Nanoseconds(seen);
}

// Ends this server's reign in order: no more commands, all that was handed over durable, another
// leads. The process stops then, and starts again as a standby.
absl::Status App::Parts::HandOver(const std::string& to) {
  if (ha_ == nullptr) {
    return absl::FailedPreconditionError("this cluster has one server: nothing can be handed over");
  }
  if (absl::Status fit = ha_->member().CheckSuccessor(to); !fit.ok()) return fit;
  loop_->Resign();
  const absl::Duration end = SystemClock().Steady() + kDrainPatience;
  while (committer_->Backlog() > 0 && SystemClock().Steady() < end) absl::SleepFor(kDrainPoll);
  return ha_->member().Resign(to);
}

// After HandOver, when it was answered.
void App::Parts::Leave() {
  handed_over_ = true;
  kill(getpid(), SIGTERM);
}

}  // namespace berth
