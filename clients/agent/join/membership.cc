#include "clients/agent/join/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr absl::Duration kFirstRetry = absl::Seconds(1), kLastRetry = absl::Seconds(30);
constexpr absl::Duration kFirstRenewalRetry = absl::Seconds(5);
constexpr absl::Duration kLastRenewalRetry = absl::Minutes(10);
constexpr absl::Duration kLongestWait = absl::Minutes(5);  // the machine's clock may be set

// Between half of it and all of it.
absl::Duration Jittered(absl::Duration wait, Random& random) {
  return wait * (0.5 + random.Unit() / 2);
}

}  // namespace

absl::Status EnsureNodeCertificate(const JoinSettings& settings, const std::string& token_file,
                                   const Ask& ask, Clock& clock, Random random,
                                   const JoinPause& pause) {
  const absl::Status held = HeldNodeCertificate(settings, clock.Now()).status();
  if (held.ok()) return held;
  if (token_file.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", settings.node, " needs a join token: ", held.message(),
                     "; create one (berth node token create --node ", settings.node,
                     ") and pass its file with --join"));
  }
  const absl::StatusOr<std::string> token = ReadJoinTokenFile(token_file);
  if (!token.ok()) return token.status();
  absl::Duration wait = kFirstRetry;
  for (;;) {
    const absl::Status joined = JoinWithToken(settings, *token, ask);
    if (!absl::IsUnavailable(joined)) return joined;
    LogWarn("not joined, trying again", {{"node", settings.node}, {"error", joined}});
    if (!pause(Jittered(wait, random)))
      return absl::CancelledError("stopped before the node has joined");
    wait = std::min(2 * wait, kLastRetry);
  }
}

CertificateRenewer::CertificateRenewer(JoinSettings settings, std::string token_file, Ask ask,
                                       Clock& clock, uint64_t seed, std::function<void()> renewed)
    : settings_(std::move(settings)),
      token_file_(token_file == "-" ? "" : std::move(token_file)),
      ask_(std::move(ask)),
      renewed_(std::move(renewed)),
      clock_(clock),
      random_(seed),
      thread_([this] { Run(); }) {}

CertificateRenewer::~CertificateRenewer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

bool CertificateRenewer::Pause(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(&stopping_), duration);
}

absl::Status CertificateRenewer::Renew(absl::Time now) {
  const absl::Status held = HeldNodeCertificate(settings_, now).status();
  if (held.ok()) return RenewNodeCertificate(settings_, ask_);
  if (token_file_.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        held.message(), "; start the agent again with a join token (berth node token create)"));
  }
  const absl::StatusOr<std::string> token = ReadJoinTokenFile(token_file_);
  return token.ok() ? JoinWithToken(settings_, *token, ask_) : token.status();
}

void CertificateRenewer::Run() {
  absl::Duration retry = kFirstRenewalRetry;
  double jitter = random_.Unit();
  for (;;) {
    const absl::Time now = clock_.Now();
    const absl::StatusOr<HeldCertificate> held = HeldNodeCertificate(settings_, now);
    const absl::Time due = held.ok() ? RenewalTime(*held, jitter) : now;
    if (due > now) {
      if (!Pause(std::min(due - now, kLongestWait))) return;
      continue;
    }
    const absl::Status renewed = Renew(now);
    if (renewed.ok()) {
      renewed_();
      retry = kFirstRenewalRetry;
      jitter = random_.Unit();
      continue;
    }
    LogWarn("certificate not renewed, trying again",
            {{"node", settings_.node}, {"error", renewed}});
    if (!Pause(Jittered(retry, random_))) return;
    retry = std::min(2 * retry, kLastRenewalRetry);
  }
}

}  // namespace berth
