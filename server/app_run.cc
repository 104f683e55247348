// App: its health, and how it stops.
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/app_parts.h"

namespace berth {
namespace {

constexpr absl::Duration kLoopSilence = absl::Seconds(30);     // /healthz fails after this time
constexpr absl::Duration kFarewell = absl::Milliseconds(250);  // see StopCalls
// Connections are cut this long before gRPC cancels their calls.
constexpr absl::Duration kBeforeCancel = absl::Milliseconds(100);
constexpr absl::Duration kGiveUp = absl::Seconds(1);

}  // namespace

HttpAnswer App::Parts::Health() const {
  const int64_t seen = loop_seen_nanos_.load();
  if (seen == 0) return {200, "loading\n"};
  const absl::Duration silence = SystemClock().Steady() - absl::Nanoseconds(seen);
  if (silence < kLoopSilence) return {200, "ok\n"};
  return {503,
          absl::StrCat("the loop has made no progress for ", absl::FormatDuration(silence), "\n")};
}

HttpAnswer App::Parts::Readiness() const {
  if (!ready_.load()) return {503, stopped_.load() ? "stopping\n" : "loading the store\n"};
  const std::string paused = loop_->PausedReason();
  if (!paused.empty()) return {503, absl::StrCat(paused, "\n")};
  if (ha_ != nullptr && !loop_->leads()) return StandbyReadiness();
  std::string but = health_ != nullptr ? health_->Damage() : "";
  if (but.empty()) but = maintenance_->RestoreHoldText();
  return {200, but.empty() ? "ready\n" : absl::StrCat("ready, but ", but, "\n")};
}

// Loop thread, about once a second.
void App::Parts::Housekeeping() {
  loop_seen_nanos_ = absl::ToInt64Nanoseconds(SystemClock().Steady());
  MaintainReserve();
  const bool paused = !loop_->PausedReason().empty();
  if (paused == told_paused_ || !ready_.load()) return;
  told_paused_ = paused;
  // The server as a whole still serves: reads work, and agents are heard.
  server_->GetHealthCheckService()->SetServingStatus(v1::JobService::service_full_name(), !paused);
}

// Looking for space may wait for the disk, so it does not run here.
void App::Parts::MaintainReserve() {
  if (health_ == nullptr || health_->reserve().bytes() >= SpaceReserve::kBytes) return;
  if (tending_.exchange(true)) return;
  log_executor_->Run([this] {
    health_->reserve().Fill();
    tending_ = false;
  });
}

// Waits until the loop has processed all earlier requests and the disk has them: then their clients
// have their responses. False after kStopPatience.
bool App::Parts::AwaitAnswers() {
  auto answered = std::make_shared<absl::Notification>();
  const absl::Status posted =
      loop_->Post([answered](Turn& turn) { turn.OnDurable([answered] { answered->Notify(); }); },
                  CommandClass::kEssential);
  return posted.ok() && answered->WaitForNotificationWithTimeout(kStopPatience);
}

// Ends all calls. gRPC also waits for its connections to close, which idle or dead clients do not
// do: after kFarewell they are cut. Calls that wait for a full disk would wait forever; they are
// answered when the loop is destroyed.
void App::Parts::StopCalls() {
  if (server_ == nullptr) return;
  server_->GetHealthCheckService()->SetServingStatus(false);
  guard_.reset();
  watches_->Stop();
  gateway_->DisconnectAll(absl::UnavailableError("the server is stopping"));
  acceptor_->Stop();
  const bool answered = AwaitAnswers();
  absl::Notification ended;
  std::thread shutdown([&] {
    server_->Shutdown(absl::ToChronoTime(absl::Now() + kFarewell));
    ended.Notify();
  });
  if (!ended.WaitForNotificationWithTimeout(kFarewell - kBeforeCancel)) {
    acceptor_->CutConnections();
  }
  if (!ended.WaitForNotificationWithTimeout(kFarewell + (answered ? kStopPatience : kGiveUp))) {
    LogWarn("calls still wait for the disk; they are abandoned");
    loop_thread_->Stop();
    log_executor_.reset();  // it may restart planning
    committer_->Stop();
    usage_.reset();  // its queries read the state
    loop_.reset();
  }
  shutdown.join();
}

void App::Parts::Stop() {
  if (stopped_.exchange(true)) return;
  ready_ = false;
  if (ha_ != nullptr && !loop_->leads()) ha_->Stop();
  if (http_ != nullptr) http_->SetHandler("/metrics", nullptr);  // its sources are destroyed now
  StopCalls();
  if (mixes_ != nullptr) mixes_->Stop();
  if (loop_thread_ != nullptr) loop_thread_->Stop();
  if (committer_ != nullptr) committer_->Stop();
  if (ha_ != nullptr) ha_->Stop();
  http_.reset();
  // Executors finish their queue while everything that they use still exists.
  dispatch_executor_.reset();
  price_executor_.reset();
  watch_executor_.reset();
  read_executor_.reset();
  log_executor_.reset();
  audit_executor_.reset();
  usage_.reset();
  server_.reset();
}

}  // namespace berth
