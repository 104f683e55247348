// berth port-forward JOB [TASK] [LOCAL:]REMOTE...: connects local ports with ports of a task.
//
// Each connection is a call of JobService.Exec with a client of its own, on two threads: one for
// each direction. What fails ends one connection, not the program.
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "clients/cli/attach.h"
#include "clients/cli/command.h"
#include "clients/cli/port_pair.h"
#include "clients/cli/resource_names.h"
#include "support/random.h"
#include "support/visible.h"

namespace berth {
namespace {

using Stream = grpc::ClientReaderWriterInterface<v1::ExecRequest, v1::ExecResponse>;

constexpr size_t kForwardBytes = size_t{32} << 10;
constexpr size_t kMaxForwarded = 256;  // connections at a time
constexpr int kTidyMs = 1000;
constexpr int kListenBacklog = 64;

struct ForwardArguments {
  std::string job;
  std::vector<std::string> words;
  std::string address = "127.0.0.1";
};

// Error lines of several threads.
class ErrorLines {
 public:
  explicit ErrorLines(std::ostream& err) : err_(err) {}
  void Print(const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    err_ << "berth: " << Visible(text) << "\n" << std::flush;
  }

 private:
  absl::Mutex mutex_;
  std::ostream& err_ ABSL_GUARDED_BY(mutex_);
};

// One local connection. The destructor ends it.
class Forwarded {
 public:
  Forwarded(int fd, const ClientOptions& options, const ClientEnvironment& environment,
            const v1::ExecRequest::Open& open, ErrorLines* errors)
      : fd_(fd),
        options_(options),
        random_(environment.random->Next()),
        environment_{environment.clock, environment.sleeper, &random_},
        open_(open),
        errors_(errors) {
    thread_ = std::thread([this] {
      Run();
      done_ = true;
    });
  }
  ~Forwarded() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  Forwarded(const Forwarded&) = delete;
  Forwarded& operator=(const Forwarded&) = delete;

  bool done() const { return done_; }

 private:
  void Run() {
    const auto client = Client::Connect(options_, environment_);
    absl::Status status = client.status();
    if (client.ok()) {
      status = (*client)->CallOnce([&](grpc::ClientContext* context) {
        const std::unique_ptr<Stream> stream = (*client)->stub<v1::JobService>().Exec(context);
        return Serve(stream.get(), context);
      });
    }
    shutdown(fd_, SHUT_RDWR);
    if (!status.ok() && !left_)
      errors_->Print(absl::StrCat("port ", open_.port(), ": ", status.message()));
  }

  grpc::Status Serve(Stream* stream, grpc::ClientContext* context) {
    v1::ExecRequest first;
    *first.mutable_open() = open_;
    stream->Write(first);
    v1::ExecResponse answer;
    if (!stream->Read(&answer)) return stream->Finish();
    std::thread sender([this, stream] { SendLocal(stream); });
    while (stream->Read(&answer)) {
      if (answer.has_exit_code()) continue;
      if (answer.output().empty()) {
        shutdown(fd_, SHUT_WR);
      } else if (!WriteLocal(answer.output())) {
        left_ = true;
        context->TryCancel();
      }
    }
    shutdown(fd_, SHUT_RDWR);  // ends the sender
    sender.join();
    return stream->Finish();
  }

  bool WriteLocal(const std::string& data) {
    for (size_t at = 0; at < data.size();) {
      const ssize_t n = send(fd_, data.data() + at, data.size() - at, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }

  void SendLocal(Stream* stream) {
    std::string buffer(kForwardBytes, '\0');
    v1::ExecRequest request;
    for (;;) {
      const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      request.set_input(buffer.data(), static_cast<size_t>(n));
      if (!stream->Write(request)) return;
    }
    request.set_input_end(true);
    stream->Write(request);
  }

  const int fd_;
  const ClientOptions options_;
  Random random_;
  const ClientEnvironment environment_;
  const v1::ExecRequest::Open open_;
  ErrorLines* const errors_;
  std::atomic<bool> left_ = false;  // the local side ended it
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

struct LocalListener {
  int fd = -1;
  uint32_t remote = 0;
};

std::string WithPort(const std::string& address, int port) {
  return address.find(':') == std::string::npos ? absl::StrCat(address, ":", port)
                                                : absl::StrCat("[", address, "]:", port);
}

// Listens on a numeric address; sets the port if it is 0.
absl::StatusOr<int> ListenOn(const std::string& address, int* port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int wrong = getaddrinfo(address.c_str(), absl::StrCat(*port).c_str(), &hints, &found);
  if (wrong != 0)
    return absl::InvalidArgumentError(absl::StrCat(address, ": ", gai_strerror(wrong)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(fd, kListenBacklog) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", WithPort(address, *port), ": ", std::strerror(error)));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  *port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return fd;
}

class Forwarder {
 public:
  Forwarder(Session& session, const ForwardArguments& arguments, std::string task)
      : session_(session), arguments_(arguments), task_(std::move(task)), errors_(session.err()) {}
  ~Forwarder() {
    for (const LocalListener& listener : listeners_) close(listener.fd);
  }
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  absl::Status Listen(const std::vector<PortPair>& pairs) {
    for (PortPair pair : pairs) {
      const absl::StatusOr<int> fd = ListenOn(arguments_.address, &pair.local);
      if (!fd.ok()) return fd.status();
      listeners_.push_back({*fd, static_cast<uint32_t>(pair.remote)});
      session_.out() << "forwarding " << WithPort(arguments_.address, pair.local) << " -> job/"
                     << arguments_.job << "/" << task_ << " port " << pair.remote << "\n";
    }
    session_.out().flush();
    return absl::OkStatus();
  }

  // Until a signal ends the program.
  ExitCode Run() {
    for (;;) {
      std::vector<pollfd> fds;
      for (const LocalListener& listener : listeners_) fds.push_back({listener.fd, POLLIN, 0});
      // Connections that have ended are closed soon.
      const int wait_ms = forwarded_.empty() ? -1 : kTidyMs;
      if (poll(fds.data(), fds.size(), wait_ms) < 0 && errno != EINTR) return ExitCode::kRefused;
      forwarded_.remove_if([](const auto& one) { return one->done(); });
      for (size_t i = 0; i < fds.size(); ++i) {
        if ((fds[i].revents & POLLIN) != 0) Accept(listeners_[i]);
      }
    }
  }

 private:
  void Accept(const LocalListener& listener) {
    const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
      errors_.Print(absl::StrCat("cannot accept connections now: ", std::strerror(errno)));
      poll(nullptr, 0, kTidyMs);
      return;
    }
    if (fd < 0) return;
    if (forwarded_.size() >= kMaxForwarded) {
      errors_.Print(absl::StrCat("more than ", kMaxForwarded, " connections at a time"));
      close(fd);
      return;
    }
    v1::ExecRequest::Open open;
    open.set_job(arguments_.job);
    open.set_task(task_);
    open.set_port(listener.remote);
    forwarded_.push_back(std::make_unique<Forwarded>(fd, session_.options.client,
                                                     session_.io().environment, open, &errors_));
  }

  Session& session_;
  const ForwardArguments& arguments_;
  const std::string task_;
  ErrorLines errors_;
  std::vector<LocalListener> listeners_;
  std::list<std::unique_ptr<Forwarded>> forwarded_;
};

ExitCode ForwardUsage(Session& session, const std::string& text) {
  session.err() << "berth: " << text << "; see berth port-forward --help\n";
  return ExitCode::kUsage;
}

ExitCode PortForward(Session& session, const ForwardArguments& given) {
  ForwardArguments arguments = given;
  std::string task;
  SplitTask(&arguments.job, &task);
  std::vector<std::string> words = arguments.words;
  if (!words.empty() && !LooksLikePorts(words[0])) {
    task = words[0];
    TaskName()(task);
    words.erase(words.begin());
  }
  if (words.empty()) return ForwardUsage(session, "give at least one port: [LOCAL:]REMOTE");
  std::vector<PortPair> pairs;
  for (const std::string& word : words) {
    const absl::StatusOr<PortPair> pair = ParsePortPair(word);
    if (!pair.ok()) return ForwardUsage(session, std::string(pair.status().message()));
    pairs.push_back(*pair);
  }
  const absl::StatusOr<v1::Task> found = FindTask(session, arguments.job, task);
  if (!found.ok()) return session.Finish(found.status());
  const std::string name = NameOfTask(*found);
  if (found->state() != v1::TASK_RUNNING) {
    return session.Finish(absl::FailedPreconditionError(
        absl::StrCat("task ", name, " of job \"", arguments.job, "\" is not running")));
  }
  Forwarder forwarder(session, arguments, name);
  if (const absl::Status status = forwarder.Listen(pairs); !status.ok())
    return session.Finish(status);
  return forwarder.Run();
}

}  // namespace

void AddPortForwardCommand(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ForwardArguments>();
  CLI::App* forward = AddCommand(app, session, "port-forward",
                                 "connect local ports with ports inside a running task",
                                 [arguments](Session& s) { return PortForward(s, *arguments); });
  forward->add_option("JOB", arguments->job, "job, or job/JOB/TASK")
      ->required()
      ->transform(JobOrTaskName());
  forward
      ->add_option("PORTS", arguments->words,
                   "GROUP-INDEX if it is not rank 0; then [LOCAL:]REMOTE, such as 8888 or "
                   "9000:8888; LOCAL 0: any free port")
      ->required();
  forward->add_option(
      "--address", arguments->address,
      "numeric address to listen on; default 127.0.0.1, which other machines cannot "
      "reach");
}

}  // namespace berth
