// berth exec JOB -- COMMAND...: runs another command inside a running task.
//
// This thread prints the output of the command; another thread sends standard input. Meanwhile, a
// terminal is in raw mode, so that every key reaches the command.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <thread>

#include "clients/cli/command.h"
#include "clients/cli/resource_names.h"
#include "support/errors.h"

namespace berth {
namespace {

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr int kResizePollMs = 500;

struct ExecArguments {
  std::string job;
  std::string task;
  bool terminal = false;
  bool no_input = false;
};

using Stream = grpc::ClientReaderWriterInterface<v1::ExecRequest, v1::ExecResponse>;

bool WindowSize(v1::TerminalSize* size) {
  winsize window{};
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0)
    return false;
  size->set_rows(window.ws_row);
  size->set_columns(window.ws_col);
  return true;
}

// Puts the terminal into raw mode during its lifetime.
class RawTerminal {
 public:
  explicit RawTerminal(bool wanted) : raw_(wanted && tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!raw_) return;
    termios raw = before_;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~RawTerminal() {
    if (raw_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  const bool raw_;
};

// Sends standard input until that ends, the stream ends, or the destructor runs.
class InputPump {
 public:
  InputPump(Stream* stream, const ExecArguments& arguments)
      : stream_(stream), arguments_(arguments), stop_fd_(eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this] { Run(); });
  }
  ~InputPump() {
    eventfd_write(stop_fd_, 1);
    thread_.join();
    close(stop_fd_);
  }
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

 private:
  void Run() {
    v1::TerminalSize size;
    WindowSize(&size);
    bool open = !arguments_.no_input;
    if (!open && !SendEnd()) return;
    for (;;) {
      pollfd fds[] = {{stop_fd_, POLLIN, 0}, {open ? STDIN_FILENO : -1, POLLIN, 0}};
      if (poll(fds, 2, arguments_.terminal ? kResizePollMs : -1) < 0 && errno != EINTR) return;
      if (fds[0].revents != 0) return;
      if (arguments_.terminal && !SendResize(&size)) return;
      if (fds[1].revents != 0 && !SendInput(&open)) return;
    }
  }
  bool SendInput(bool* open) {
    char buffer[kReadBytes];
    const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return true;
    *open = n > 0;
    if (n <= 0) return SendEnd();
    v1::ExecRequest request;
    request.set_input(buffer, static_cast<size_t>(n));
    return stream_->Write(request);
  }
  bool SendEnd() {
    v1::ExecRequest request;
    request.set_input_end(true);
    return stream_->Write(request);
  }
  bool SendResize(v1::TerminalSize* known) {
    v1::TerminalSize now;
    if (!WindowSize(&now) || (now.rows() == known->rows() && now.columns() == known->columns()))
      return true;
    *known = now;
    v1::ExecRequest request;
    *request.mutable_resize() = now;
    return stream_->Write(request);
  }

  Stream* const stream_;
  const ExecArguments& arguments_;
  const int stop_fd_;
  std::thread thread_;
};

void PrintAnswer(Session& session, const v1::ExecResponse& answer) {
  std::ostream& out = answer.stream() == v1::STDERR ? session.err() : session.out();
  out << answer.output();
  out.flush();
}

ExitCode Exec(Session& session, const ExecArguments& arguments,
              const std::vector<std::string>& command) {
  if (command.empty()) {
    session.err() << "berth: exec needs a command after --\n";
    return ExitCode::kUsage;
  }
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  v1::ExecRequest first;
  first.mutable_open()->set_job(arguments.job);
  first.mutable_open()->set_task(arguments.task);
  for (const std::string& word : command) first.mutable_open()->add_command(word);
  if (arguments.terminal && !WindowSize(first.mutable_open()->mutable_terminal())) {
    session.err() << "berth: --terminal needs a terminal as standard input\n";
    return ExitCode::kUsage;
  }
  std::optional<int> exit_code;
  const absl::Status status = (*client)->CallOnce([&](grpc::ClientContext* context) {
    const std::unique_ptr<Stream> stream = (*client)->stub<v1::JobService>().Exec(context);
    stream->Write(first);  // Finish returns the error of the stream
    v1::ExecResponse answer;
    if (stream->Read(&answer)) {  // the command is running
      const RawTerminal raw(arguments.terminal);
      const InputPump input(stream.get(), arguments);
      do {
        PrintAnswer(session, answer);
        if (answer.has_exit_code()) exit_code = answer.exit_code();
      } while (stream->Read(&answer));
    }
    return stream->Finish();
  });
  if (!status.ok() || !exit_code.has_value()) return session.Finish(status);
  return static_cast<ExitCode>(*exit_code & 0xff);
}

}  // namespace

void AddExecCommand(CLI::App& app, Session& session, const std::vector<std::string>& command) {
  auto arguments = std::make_shared<ExecArguments>();
  CLI::App* exec =
      AddCommand(app, session, "exec",
                 "run a command inside a running task: exec JOB -- COMMAND...; exits with its code",
                 [arguments, command](Session& s) {
                   SplitTask(&arguments->job, &arguments->task);
                   return Exec(s, *arguments, command);
                 });
  // "NAME" is completed with names of the noun, and "exec" at the top level has no noun.
  exec->add_option(app.get_parent() == nullptr ? "JOB" : "NAME", arguments->job,
                   "job, or job/JOB/TASK")
      ->required()
      ->transform(JobOrTaskName());
  exec->add_option("--task", arguments->task, "GROUP-INDEX; default: rank 0")
      ->transform(TaskName());
  exec->add_flag("--terminal,-t", arguments->terminal, "give the command a terminal");
  exec->add_flag("--no-input,-n", arguments->no_input, "give the command no standard input");
}

}  // namespace berth
