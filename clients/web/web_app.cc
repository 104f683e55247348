#include "clients/web/web_app.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "berth/web/v1/api.pb.h"
#include "clients/web/assets.h"
#include "clients/web/connect_error.h"
#include "clients/web/log_follow.h"
#include "clients/web/methods.h"
#include "clients/web/web_config.h"
#include "support/clock.h"
#include "support/log.h"
#include "support/proto_json.h"
#include "support/server_list.h"
#include "support/version.h"

namespace berth::web {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kStayAwake = absl::Seconds(15);

absl::Duration Steady() { return SystemClock().Steady(); }

absl::Status NotSignedIn() { return absl::UnauthenticatedError("not signed in"); }

WebAnswer EventsAnswer(std::shared_ptr<EventStream> stream) {
  WebAnswer answer;
  answer.content_type = "text/event-stream";
  answer.stream = std::move(stream);
  return answer;
}

// The library's message could repeat what was typed.
template <class Body>
absl::StatusOr<Body> BodyOf(const WebRequest& request) {
  Body body;
  if (google::protobuf::util::JsonStringToMessage(request.body, &body).ok()) return body;
  return absl::InvalidArgumentError(
      absl::StrCat("the body is not a ", Body::descriptor()->name(), " in JSON"));
}

// A page of its own: a cookie with SameSite=Strict is not sent on the way from the issuer, but is
// from here on.
WebAnswer GoHome() {
  WebAnswer answer;
  answer.content_type = "text/html; charset=utf-8";
  answer.body =
      "<!doctype html><html lang=\"en\"><meta http-equiv=\"refresh\" content=\"0;url=/\">"
      "<title>Berth</title><p>Signed in. <a href=\"/\">Go on</a></p></html>\n";
  return answer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WebApp>> WebApp::Open(const v1::Web& config, Ask ask) {
  std::unique_ptr<SignIn> sign_in;
  if (HasSignIn(config)) {
    absl::StatusOr<std::unique_ptr<SignIn>> made = SignIn::Open(config, std::move(ask));
    if (!made.ok()) return made.status();
    sign_in = *std::move(made);
  }
  WebServer::Options options{.address = config.listen(), .certificate = nullptr};
  options.client_certificates = config.has_certificates();
  if (!config.certificate().empty()) {
    absl::StatusOr<oidc::ServerCertificate> certificate =
        oidc::ServerCertificate::Open(config.certificate(), config.key());
    if (!certificate.ok()) return certificate.status();
    options.certificate = std::make_shared<oidc::ServerCertificate>(*std::move(certificate));
  }
  std::unique_ptr<WebApp> app(new WebApp(config, std::move(sign_in)));
  absl::StatusOr<std::unique_ptr<WebServer>> server =
      WebServer::Start(options, [app = app.get()](const WebRequest& request, AnswerLater answer) {
        app->Handle(request, answer);
      });
  if (!server.ok()) return server.status();
  app->server_ = *std::move(server);
  return app;
}

WebApp::WebApp(const v1::Web& config, std::unique_ptr<SignIn> sign_in)
    : config_(config),
      guards_(OriginsOf(config), absl::StartsWith(OriginsOf(config).front(), "https://")),
      sign_in_(std::move(sign_in)),
      session_of_all_(sign_in_ != nullptr ? nullptr
                                          : std::make_shared<Session>(
                                                "", absl::InfiniteFuture(),
                                                std::make_shared<Upstream>(
                                                    ServersOf(config.server()), UpstreamIdentity{}),
                                                kBoundsOfAll)),
      workers_(std::make_unique<Workers>(kSignInThreads, kSignInsWaiting)) {
  ticks_ = std::thread([this] { RunTicks(); });
}

WebApp::~WebApp() {
  stop_.Notify();
  ticks_.join();
  const absl::Status why = absl::UnavailableError("berth-web stops");
  for (const auto& session : sessions_.All()) session->live->End(why);
  if (session_of_all_ != nullptr) session_of_all_->live->End(why);
  workers_.reset();
  server_.reset();
}

void WebApp::Handle(const WebRequest& request, const AnswerLater& answer) {
  const AnswerLater hardened = [this, answer](WebAnswer made) {
    guards_.Harden(&made);
    answer(std::move(made));
  };
  if (request.path == "/healthz") {
    WebAnswer healthy;
    healthy.body = "ok\n";
    healthy.content_type = "text/plain; charset=utf-8";
    return hardened(std::move(healthy));
  }
  if (absl::Status status = guards_.CheckOrigin(request); !status.ok()) {
    return hardened(ErrorAnswer(status));
  }
  if (request.method == "POST") return HandlePost(request, hardened);
  HandleGet(request, hardened);
}

void WebApp::HandleGet(const WebRequest& request, const AnswerLater& answer) {
  const std::string& path = request.path;
  // Back from the issuer, which is another site.
  if (path == "/api/sign-in/callback") return FinishAtIssuer(request, answer);
  const bool page = !absl::StartsWith(path, "/api/");
  if (absl::Status status = guards_.CheckSite(request); !page && !status.ok()) {
    return answer(ErrorAnswer(status));
  }
  if (path == "/api/session") return AnswerSession(request, answer);
  if (path == "/api/watch") return Watch(request, answer);
  if (path == "/api/logs") return Logs(request, answer);
  if (path == "/api/sign-in/issuer") return BeginAtIssuer(request, answer);
  if (absl::StartsWith(path, "/berth.v1.")) {
    return answer(ErrorAnswer(absl::InvalidArgumentError("calls are sent with POST")));
  }
  if (absl::StartsWith(path, "/api/")) {
    return answer(ErrorAnswer(absl::NotFoundError("berth-web does not have this path")));
  }
  answer(AnswerWithAsset(request));
}

void WebApp::HandlePost(const WebRequest& request, const AnswerLater& answer) {
  const std::shared_ptr<Session> session = SessionFor(request);
  const std::string csrf = session != nullptr && sign_in_ != nullptr ? session->csrf : "";
  if (absl::Status status = guards_.CheckPost(request, csrf); !status.ok()) {
    return answer(ErrorAnswer(status));
  }
  const std::string& path = request.path;
  if (absl::StartsWith(path, "/berth.v1.")) return PassOn(request, session, answer);
  if (path == "/api/terminal") return OpenTerminal(request, session, answer);
  if (path == "/api/terminal/input") return TerminalInput(request, session, answer);
  if (sign_in_ != nullptr && path == "/api/sign-out") return answer(SignOut(request));
  if (sign_in_ != nullptr && path == "/api/sign-in/certificate") {
    return SignInBy(
        [this, pem = request.certificate] { return sign_in_->ByCertificate(pem, absl::Now()); },
        false, answer);
  }
  if (sign_in_ != nullptr && path == "/api/sign-in/token") {
    v1::TokenSignIn body;
    // The library's message would contain parts of the token.
    if (!google::protobuf::util::JsonStringToMessage(request.body, &body).ok()) {
      return answer(ErrorAnswer(absl::InvalidArgumentError("the body is not {\"token\": ...}")));
    }
    return SignInBy([this, token = body.token()] { return sign_in_->ByToken(token); }, false,
                    answer);
  }
  answer(ErrorAnswer(absl::NotFoundError("berth-web does not have this path")));
}

void WebApp::PassOn(const WebRequest& request, const std::shared_ptr<Session>& session,
                    const AnswerLater& answer) {
  const auto fail = [&](const absl::Status& status) { answer(ErrorAnswer(status)); };
  if (session == nullptr) return fail(NotSignedIn());
  const auto method = MethodOf(request.path);
  if (!method.ok()) return fail(method.status());
  absl::StatusOr<std::string> bytes = RequestFromJson(**method, request.body);
  if (!bytes.ok()) return fail(bytes.status());
  std::string id = request.Header("berth-request-id");
  if (id.size() > kMaxRequestIdBytes) {
    return fail(absl::InvalidArgumentError("Berth-Request-Id is too long"));
  }
  if (id.empty()) id = NewSecret();
  if (absl::Status status = session->CallBegins(Steady()); !status.ok()) return fail(status);
  Upstream::Call call{
      .method = request.path, .request = *std::move(bytes), .request_id = std::move(id)};
  const auto done = [session, answer](const absl::StatusOr<std::string>& json) {
    session->CallEnded();
    if (!json.ok()) return answer(ErrorAnswer(json.status()));
    WebAnswer made;
    made.body = *json;
    answer(std::move(made));
  };
  if (IsRead(**method)) return session->reads->Ask(**method, std::move(call), done);
  session->upstream->Unary(std::move(call),
                           [done, method = *method](const absl::StatusOr<std::string>& result) {
                             done(result.ok() ? AnswerToJson(*method, *result) : result.status());
                           });
}

absl::Status WebApp::TakeStream(Session& session) {
  if (++streams_ > kStreams) {
    --streams_;
    return absl::ResourceExhaustedError("too many pages are open; try again later");
  }
  absl::Status status = session.StreamBegins(Steady());
  if (!status.ok()) --streams_;
  return status;
}

void WebApp::Watch(const WebRequest& request, const AnswerLater& answer) {
  const std::shared_ptr<Session> session = SessionFor(request);
  if (session == nullptr) return answer(ErrorAnswer(NotSignedIn()));
  if (absl::Status status = TakeStream(*session); !status.ok()) return answer(ErrorAnswer(status));
  auto stream = std::make_shared<EventStream>();
  stream->OnGone([this, session] {
    session->StreamEnded();
    --streams_;
  });
  session->live->Add(stream, request.Header("last-event-id"), Steady());
  answer(EventsAnswer(std::move(stream)));
}

void WebApp::Logs(const WebRequest& request, const AnswerLater& answer) {
  const std::shared_ptr<Session> session = SessionFor(request);
  if (session == nullptr) return answer(ErrorAnswer(NotSignedIn()));
  berth::v1::ReadLogsRequest logs;
  logs.set_job(request.Query("job"));
  logs.set_task(request.Query("task"));
  logs.set_follow(true);
  int64_t tail = 0;
  const bool numbers =
      request.Query("tail").empty() || absl::SimpleAtoi(request.Query("tail"), &tail);
  if (!numbers || tail < 0) {
    return answer(ErrorAnswer(absl::InvalidArgumentError("tail: must be a number of lines")));
  }
  logs.set_tail_lines(tail);
  if (absl::Status status = TakeStream(*session); !status.ok()) return answer(ErrorAnswer(status));
  const auto stream = FollowLogs(session->upstream, logs, [this, session] {
    session->StreamEnded();
    --streams_;
  });
  NoteQuiet(stream);
  answer(EventsAnswer(stream));
}

void WebApp::OpenTerminal(const WebRequest& request, const std::shared_ptr<Session>& session,
                          const AnswerLater& answer) {
  const auto fail = [&](const absl::Status& status) { answer(ErrorAnswer(status)); };
  if (config_.has_terminals() && !config_.terminals()) {
    return fail(absl::UnimplementedError("terminals are turned off here; use berth job exec"));
  }
  if (session == nullptr) return fail(NotSignedIn());
  const absl::StatusOr<v1::TerminalOpen> body = BodyOf<v1::TerminalOpen>(request);
  if (!body.ok()) return fail(body.status());
  if (!body->open().has_terminal() || body->open().port() != 0) {
    return fail(absl::InvalidArgumentError("open: needs a terminal's size, and no port"));
  }
  if (absl::Status status = TakeStream(*session); !status.ok()) return fail(status);
  const auto stream =
      terminals_.Open(session.get(), session->upstream, body->open(), [this, session] {
        session->StreamEnded();
        --streams_;
      });
  NoteQuiet(stream);
  answer(EventsAnswer(stream));
}

void WebApp::TerminalInput(const WebRequest& request, const std::shared_ptr<Session>& session,
                           const AnswerLater& answer) {
  const auto fail = [&](const absl::Status& status) { answer(ErrorAnswer(status)); };
  if (session == nullptr) return fail(NotSignedIn());
  const absl::StatusOr<v1::TerminalInput> body = BodyOf<v1::TerminalInput>(request);
  if (!body.ok()) return fail(body.status());
  if (absl::Status status = session->CallBegins(Steady()); !status.ok()) return fail(status);
  const absl::Status status = terminals_.Input(session.get(), *body);
  session->CallEnded();
  if (!status.ok()) return fail(status);
  answer(WebAnswer{.body = "{}"});
}

std::shared_ptr<Session> WebApp::SessionFor(const WebRequest& request) const {
  if (session_of_all_ != nullptr) return session_of_all_;
  return sessions_.Find(guards_.SessionOf(request), absl::Now());
}

void WebApp::NoteQuiet(const std::shared_ptr<EventStream>& stream) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(quiet_, [](const auto& weak) { return weak.expired(); });
  quiet_.push_back(stream);
}

void WebApp::RunTicks() {
  while (!stop_.WaitForNotificationWithTimeout(kTick)) {
    const absl::Duration now = Steady();
    sessions_.Sweep(now, absl::Now());
    for (const auto& session : sessions_.All()) session->live->Tick(now);
    if (session_of_all_ != nullptr) session_of_all_->live->Tick(now);
    KeepAwake(now);
  }
}

void WebApp::KeepAwake(absl::Duration now) {
  std::vector<std::weak_ptr<EventStream>> quiet;
  {
    absl::MutexLock lock(&mutex_);
    if (now - awake_ < kStayAwake) return;
    awake_ = now;
    quiet = quiet_;
  }
  for (const auto& weak : quiet) {
    if (const auto stream = weak.lock()) stream->Write(":\n\n");
  }
}

// ---- sign-in

// Who is signed out is offered issuers, which berth-authd is asked for now and then.
void WebApp::AnswerSession(const WebRequest& request, const AnswerLater& answer) {
  const bool asks = sign_in_ != nullptr && SessionFor(request) == nullptr;
  const bool later = asks && workers_->Add([this, request, answer] {
    (void)sign_in_->Issuers();
    answer(DescribeSession(request));
  });
  if (!later) answer(DescribeSession(request));
}

WebAnswer WebApp::DescribeSession(const WebRequest& request) const {
  v1::SessionInfo info;
  info.set_version(kBerthVersion);
  const std::shared_ptr<Session> session = SessionFor(request);
  if (session_of_all_ != nullptr) {
    info.set_mode(v1::SessionInfo::OPEN);
  } else if (session != nullptr) {
    info.set_mode(v1::SessionInfo::SIGNED_IN);
    info.set_user(session->user);
    info.set_csrf(session->csrf);
    info.set_ends_in_s(absl::ToInt64Seconds(session->end - absl::Now()));
  } else {
    info.set_mode(v1::SessionInfo::SIGNED_OUT);
    info.set_token(sign_in_->takes_tokens());
    info.set_certificate(sign_in_->takes_certificates());
    info.set_certificate_shown(!request.certificate.empty());
    for (const std::string& url : sign_in_->KnownIssuers()) info.add_issuers(url);
  }
  WebAnswer answer;
  answer.body = WriteJson(info);
  return answer;
}

bool WebApp::TakeSignIn() {
  const absl::Duration now = Steady();
  absl::MutexLock lock(&mutex_);
  if (now - minute_ >= absl::Minutes(1)) {
    minute_ = now;
    sign_ins_ = 0;
  }
  return ++sign_ins_ <= kSignInsPerMinute;
}

void WebApp::OnWorker(const AnswerLater& answer, std::function<WebAnswer()> work) {
  const bool begins =
      TakeSignIn() && workers_->Add([answer, work = std::move(work)] { answer(work()); });
  if (begins) return;
  answer(ErrorAnswer(absl::ResourceExhaustedError("too many sign-ins; try again in a minute")));
}

void WebApp::SignInBy(std::function<absl::StatusOr<SignedIn>()> begin, bool from_issuer,
                      const AnswerLater& answer) {
  OnWorker(answer, [this, begin = std::move(begin), from_issuer] {
    return BeginSession(begin(), from_issuer);
  });
}

WebAnswer WebApp::BeginSession(const absl::StatusOr<SignedIn>& signed_in, bool from_issuer) {
  if (!signed_in.ok()) {
    LogInfo("sign-in refused", {{"error", signed_in.status()}});
    return ErrorAnswer(signed_in.status());
  }
  auto session = std::make_shared<Session>(
      signed_in->user, signed_in->end,
      std::make_shared<Upstream>(ServersOf(config_.server()), signed_in->identity),
      SessionBounds{});
  const absl::StatusOr<std::string> secret = sessions_.Add(std::move(session));
  if (!secret.ok()) return ErrorAnswer(secret.status());
  LogInfo("signed in", {{"user", signed_in->user}});
  WebAnswer answer = from_issuer ? GoHome() : WebAnswer{.body = "{}"};
  answer.headers.emplace_back("Set-Cookie", guards_.SessionCookie(*secret));
  if (from_issuer) answer.headers.emplace_back("Set-Cookie", guards_.LoginCookie(""));
  return answer;
}

void WebApp::BeginAtIssuer(const WebRequest& request, const AnswerLater& answer) {
  if (sign_in_ == nullptr || !sign_in_->takes_tokens()) {
    return answer(ErrorAnswer(absl::NotFoundError("there are no issuers")));
  }
  OnWorker(answer, [this, issuer = request.Query("issuer")] {
    const absl::StatusOr<SignIn::Begun> begun = sign_in_->Begin(issuer, absl::Now());
    if (!begun.ok()) return ErrorAnswer(begun.status());
    WebAnswer redirect;
    redirect.code = 303;
    redirect.headers.emplace_back("Location", begun->url);
    redirect.headers.emplace_back("Set-Cookie", guards_.LoginCookie(begun->secret));
    return redirect;
  });
}

void WebApp::FinishAtIssuer(const WebRequest& request, const AnswerLater& answer) {
  if (sign_in_ == nullptr) return answer(ErrorAnswer(absl::NotFoundError("there are no issuers")));
  SignInBy([this, state = request.Query("state"), code = request.Query("code"),
            secret = guards_.LoginOf(
                request)] { return sign_in_->Finish(state, code, secret, absl::Now()); },
           true, answer);
}

WebAnswer WebApp::SignOut(const WebRequest& request) {
  if (const auto session = SessionFor(request)) terminals_.EndOf(session.get());
  sessions_.Remove(guards_.SessionOf(request), absl::UnauthenticatedError("signed out"));
  WebAnswer answer{.body = "{}"};
  answer.headers.emplace_back("Set-Cookie", guards_.SessionCookie(""));
  return answer;
}

}  // namespace berth::web
