// WebApp: what each path of berth-web does. docs/developers/web.md.
#ifndef BERTH_CLIENTS_WEB_WEB_APP_H_
#define BERTH_CLIENTS_WEB_WEB_APP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "berth/web/v1/web.pb.h"
#include "clients/web/guards.h"
#include "clients/web/sessions.h"
#include "clients/web/sign_in.h"
#include "clients/web/terminal.h"
#include "clients/web/web_server.h"
#include "clients/web/workers.h"

namespace berth::web {

class WebApp {
 public:
  // Listens. `config` is completed. INVALID_ARGUMENT: a file; UNAVAILABLE: the address.
  static absl::StatusOr<std::unique_ptr<WebApp>> Open(const v1::Web& config, Ask ask);
  // Ends all sessions and connections.
  ~WebApp();
  WebApp(const WebApp&) = delete;
  WebApp& operator=(const WebApp&) = delete;

 private:
  WebApp(const v1::Web& config, std::unique_ptr<SignIn> sign_in);

  void Handle(const WebRequest& request, const AnswerLater& answer);
  void HandleGet(const WebRequest& request, const AnswerLater& answer);
  void HandlePost(const WebRequest& request, const AnswerLater& answer);

  void PassOn(const WebRequest& request, const std::shared_ptr<Session>& session,
              const AnswerLater& answer);
  void Watch(const WebRequest& request, const AnswerLater& answer);
  void Logs(const WebRequest& request, const AnswerLater& answer);
  void OpenTerminal(const WebRequest& request, const std::shared_ptr<Session>& session,
                    const AnswerLater& answer);
  void TerminalInput(const WebRequest& request, const std::shared_ptr<Session>& session,
                     const AnswerLater& answer);

  void AnswerSession(const WebRequest& request, const AnswerLater& answer);
  WebAnswer DescribeSession(const WebRequest& request) const;
  // Runs on a worker; `begin` returns who has signed in.
  void SignInBy(std::function<absl::StatusOr<SignedIn>()> begin, bool from_issuer,
                const AnswerLater& answer);
  WebAnswer BeginSession(const absl::StatusOr<SignedIn>& signed_in, bool from_issuer);
  void BeginAtIssuer(const WebRequest& request, const AnswerLater& answer);
  void FinishAtIssuer(const WebRequest& request, const AnswerLater& answer);
  WebAnswer SignOut(const WebRequest& request);
  void OnWorker(const AnswerLater& answer, std::function<WebAnswer()> work);
  bool TakeSignIn() ABSL_LOCKS_EXCLUDED(mutex_);

  // Null: nobody is signed in.
  std::shared_ptr<Session> SessionFor(const WebRequest& request) const;
  absl::Status TakeStream(Session& session);
  void NoteQuiet(const std::shared_ptr<EventStream>& stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Until the end: changes, heartbeats, sessions that are over.
  void RunTicks();
  void KeepAwake(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  const v1::Web config_;
  const Guards guards_;
  const std::unique_ptr<SignIn> sign_in_;          // null: without sign-in
  const std::shared_ptr<Session> session_of_all_;  // null: with sign-in
  Sessions sessions_;
  std::atomic<int> streams_ = 0;
  Terminals terminals_;
  absl::Mutex mutex_;
  absl::Duration minute_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // began at
  int sign_ins_ ABSL_GUARDED_BY(mutex_) = 0;                                   // in this minute
  // Streams that may say nothing for a long time: a byte now and then finds out who has gone.
  std::vector<std::weak_ptr<EventStream>> quiet_ ABSL_GUARDED_BY(mutex_);
  absl::Duration awake_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  absl::Notification stop_;
  std::thread ticks_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<WebServer> server_;
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_WEB_APP_H_
