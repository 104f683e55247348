#include "clients/session/exec_call.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>

#include "clients/session/terminal_io.h"
#include "support/errors.h"

namespace berth {
namespace {

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr int kResizePollMs = 250;

using Stream = grpc::ClientReaderWriterInterface<v1::ExecRequest, v1::ExecResponse>;

// Sends standard input until that ends, the stream ends, or the destructor runs.
class InputPump {
 public:
  InputPump(Stream* stream, grpc::ClientContext* context, const ExecCall& call)
      : stream_(stream),
        context_(context),
        call_(call),
        filter_(call.detach_keys),
        stop_fd_(eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this] { Run(); });
  }
  ~InputPump() {
    eventfd_write(stop_fd_, 1);
    thread_.join();
    close(stop_fd_);
  }
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

  bool detached() const { return detached_; }

 private:
  void Run() {
    v1::TerminalSize size = call_.open.terminal();
    bool open = !call_.no_input;
    if (!open && !SendEnd()) return;
    for (;;) {
      pollfd fds[] = {{stop_fd_, POLLIN, 0}, {open ? STDIN_FILENO : -1, POLLIN, 0}};
      if (poll(fds, 2, call_.raw ? kResizePollMs : -1) < 0 && errno != EINTR) return;
      if (fds[0].revents != 0) return;
      if (call_.raw && !SendResize(&size)) return;
      if (fds[1].revents != 0 && !SendInput(&open)) return;
    }
  }
  bool SendInput(bool* open) {
    char buffer[kReadBytes];
    const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return true;
    *open = n > 0;
    if (n <= 0) return SendEnd();
    bool detach = false;
    v1::ExecRequest request;
    request.set_input(filter_.Take({buffer, static_cast<size_t>(n)}, &detach));
    if (!request.input().empty() && !stream_->Write(request)) return false;
    if (!detach) return true;
    detached_ = true;
    context_->TryCancel();
    return false;
  }
  bool SendEnd() {
    if (call_.keeps_open) return true;
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
  grpc::ClientContext* const context_;
  const ExecCall& call_;
  DetachFilter filter_;
  const int stop_fd_;
  std::atomic<bool> detached_ = false;
  std::thread thread_;
};

void PrintAnswer(const v1::ExecResponse& answer, std::ostream& out) {
  out << answer.output();
  out.flush();
}

}  // namespace

ExecResult RunExecCall(Client& client, const ExecCall& call, std::ostream& out, std::ostream& err) {
  ExecResult result;
  v1::ExecRequest first;
  *first.mutable_open() = call.open;
  result.status = client.CallOnce([&](grpc::ClientContext* context) {
    const std::unique_ptr<Stream> stream = client.stub<v1::JobService>().Exec(context);
    stream->Write(first);  // Finish returns the error of the stream
    v1::ExecResponse answer;
    if (stream->Read(&answer)) {  // the command is running
      result.began = true;
      const RawTerminal raw(call.raw);
      const InputPump input(stream.get(), context, call);
      do {
        PrintAnswer(answer, answer.stream() == v1::STDERR ? err : out);
        if (answer.has_exit_code()) result.exit_code = answer.exit_code();
      } while (stream->Read(&answer));
      result.detached = input.detached();
    }
    return stream->Finish();
  });
  return result;
}

}  // namespace berth
