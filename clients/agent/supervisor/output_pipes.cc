#include "clients/agent/supervisor/output_pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace berth {
namespace {

constexpr size_t kReadBytes = 65536;
constexpr int kReadsPerTurn = 16;

}  // namespace

OutputPipes::~OutputPipes() {
  for (const int fd : {read_[0], read_[1], ends_[0], ends_[1]}) {
    if (fd >= 0) close(fd);
  }
}

int OutputPipes::Open() {
  for (const int i : {0, 1}) {
    int pipe[2];
    if (pipe2(pipe, O_CLOEXEC) != 0) return errno;
    read_[i] = pipe[0];
    ends_[i] = pipe[1];
    if (fcntl(read_[i], F_SETFL, O_NONBLOCK) != 0) return errno;
  }
  return 0;
}

void OutputPipes::AddTo(std::vector<pollfd>* fds) const {
  for (const int fd : read_) fds->push_back({fd, POLLIN, 0});
}

void OutputPipes::Read(LogWriter& log, int64_t unix_ms) {
  static char buffer[kReadBytes];
  for (const OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr}) {
    int& fd = read_[static_cast<int>(stream)];
    for (int i = 0; i < kReadsPerTurn && fd >= 0; ++i) {
      const ssize_t n = read(fd, buffer, sizeof buffer);
      if (n > 0) {
        log.Append(stream, std::string_view(buffer, static_cast<size_t>(n)), unix_ms);
        continue;
      }
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
      close(fd);  // every writer is gone; poll skips -1
      fd = -1;
    }
  }
}

}  // namespace berth
