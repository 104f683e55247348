// Sessions: who is signed in at this berth-web. In memory only.
#ifndef BERTH_CLIENTS_WEB_SESSIONS_H_
#define BERTH_CLIENTS_WEB_SESSIONS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clients/web/bounds.h"
#include "clients/web/live.h"
#include "clients/web/shared_reads.h"
#include "clients/web/upstream.h"
#include "support/clock.h"

namespace berth::web {

// 256 random bits in base64url.
std::string NewSecret();
// Whether two secrets are equal, in a time that does not depend on where they differ.
bool SecretsEqual(absl::string_view a, absl::string_view b);

// Thread-safe.
class Session {
 public:
  // `user` is "" without sign-in. `end`: when the certificate ends.
  Session(std::string user, absl::Time end, std::shared_ptr<Upstream> to, SessionBounds limits)
      : user(std::move(user)),
        csrf(NewSecret()),
        end(end),
        upstream(std::move(to)),
        live(std::make_shared<Live>(upstream)),
        reads(std::make_shared<SharedReads>(upstream)),
        limits_(limits),
        credit_(limits.calls_together),
        used_(SystemClock().Steady()) {}

  // RESOURCE_EXHAUSTED above a limit. Each OK is followed by CallEnded. `now`: steady.
  absl::Status CallBegins(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  void CallEnded() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StreamBegins(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  void StreamEnded() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IdleSince(absl::Duration before) const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string user;
  const std::string csrf;
  const absl::Time end;
  const std::shared_ptr<Upstream> upstream;
  const std::shared_ptr<Live> live;
  const std::shared_ptr<SharedReads> reads;

 private:
  bool TakeCredit(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionBounds limits_;
  mutable absl::Mutex mutex_;
  double credit_ ABSL_GUARDED_BY(mutex_);
  absl::Duration used_ ABSL_GUARDED_BY(mutex_);  // latest call or stream, steady
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
};

// By the secret in the browser's cookie. Thread-safe.
class Sessions {
 public:
  // The secret. RESOURCE_EXHAUSTED: too many, in all or of this user.
  absl::StatusOr<std::string> Add(std::shared_ptr<Session> session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: none, or it has ended.
  std::shared_ptr<Session> Find(const std::string& secret, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::string& secret, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends those that are over. `steady` and `now`: the time.
  void Sweep(absl::Duration steady, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<Session>> All() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  // By the hash of the secret: how long a search takes tells nothing about secrets.
  std::map<std::string, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_SESSIONS_H_
