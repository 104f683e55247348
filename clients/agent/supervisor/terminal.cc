#include "clients/agent/supervisor/terminal.h"

#include <dirent.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr size_t kMaxQueuedBytes = size_t{64} << 10;  // for one client
constexpr int kTerminalReads = 16;
constexpr int kDrainReads = 16;  // more is there only if processes still write
constexpr int kPacketsPerTurn = 16;
constexpr unsigned kMaxSide = 10'000;
constexpr winsize kFirstSize{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
constexpr int kCloseMs = 1000;

void CloseFd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// Sets the size of every terminal whose master the process holds: it is trusted, and has one.
void SetSizeIn(pid_t runtime, const winsize& size) {
  const std::string directory = "/proc/" + std::to_string(runtime) + "/fd";
  int process = static_cast<int>(syscall(SYS_pidfd_open, runtime, 0));
  DIR* listing = process < 0 ? nullptr : opendir(directory.c_str());
  while (const dirent* entry = listing == nullptr ? nullptr : readdir(listing)) {
    char target[64];
    const ssize_t n = readlinkat(dirfd(listing), entry->d_name, target, sizeof target);
    if (n <= 0 || !std::string_view(target, static_cast<size_t>(n)).ends_with("ptmx")) continue;
    int fd = static_cast<int>(syscall(SYS_pidfd_getfd, process, std::atoi(entry->d_name), 0));
    if (fd >= 0) ioctl(fd, TIOCSWINSZ, &size);
    CloseFd(&fd);
  }
  if (listing != nullptr) closedir(listing);
  CloseFd(&process);
}

}  // namespace

int UseSocketIn(int directory, const char* name, int fd, bool bind_it) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory, name);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const int failed =
      bind_it ? bind(fd, generic, sizeof address) : connect(fd, generic, sizeof address);
  return failed != 0 ? errno : 0;
}

Terminal::~Terminal() {
  for (Client& client : clients_) CloseFd(&client.fd);
  for (int* fd : {&master_, &task_end_, &listener_}) CloseFd(fd);
}

int Terminal::Open(const std::string& task_directory) {
  winsize size = kFirstSize;
  if (openpty(&master_, &task_end_, nullptr, nullptr, &size) != 0) return errno;
  fcntl(task_end_, F_SETFD, FD_CLOEXEC);
  if (fcntl(master_, F_SETFD, FD_CLOEXEC) != 0 || fcntl(master_, F_SETFL, O_NONBLOCK) != 0)
    return errno;
  int directory = open(task_directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return errno;
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = listener_ < 0 ? errno : 0;
  const mode_t before = umask(0177);
  if (error == 0) error = UseSocketIn(directory, kTerminalSocket, listener_, true);
  umask(before);
  CloseFd(&directory);
  if (error == 0 && listen(listener_, static_cast<int>(kMaxTerminalClients)) != 0) error = errno;
  return error;
}

pid_t Terminal::Foreground() const {
  const pid_t group = is_open() ? tcgetpgrp(master_) : -1;
  // The number of a group that has ended may be that of other processes by now.
  return group > 1 && getsid(group) == tcgetsid(master_) ? group : 0;
}

void Terminal::AddTo(std::vector<pollfd>* fds) const {
  if (!is_open()) return;
  const short read = !ended_ && HasRoom() ? POLLIN : 0;
  const short write = input_.empty() ? 0 : POLLOUT;
  // A descriptor without events would report the end of the other side all the time.
  if (read != 0 || write != 0) fds->push_back({master_, static_cast<short>(read | write), 0});
  if (listener_ >= 0) fds->push_back({listener_, POLLIN, 0});
  for (const Client& client : clients_) {
    const short from = input_.empty() ? POLLIN : 0;
    const short to = client.packets.empty() ? 0 : POLLOUT;
    if (from != 0 || to != 0) fds->push_back({client.fd, static_cast<short>(from | to), 0});
  }
}

int64_t Terminal::NextNs() const {
  int64_t next = tell_size_at_.empty() ? 0 : tell_size_at_.front();
  for (const Client& client : clients_) {
    if (client.stalled_ns == 0) continue;
    const int64_t at = client.stalled_ns + kStallNs;
    next = next == 0 ? at : std::min(next, at);
  }
  return next;
}

void Terminal::Work(int64_t now_ns, const Print& print) {
  if (!is_open()) return;
  Accept();
  WriteInput();
  for (Client& client : clients_) Receive(&client);
  TellSizeAgain(now_ns);
  for (int i = 0; i < kTerminalReads && !ended_ && HasRoom(); ++i) {
    if (!ReadOutput(print)) break;
  }
  for (Client& client : clients_) Flush(now_ns, &client);
  DropClosed();
}

// Too many clients are told so, and not counted.
void Terminal::Accept() {
  while (listener_ >= 0) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (clients_.size() >= kMaxTerminalClients) {
      const std::string_view refused = "etoo many clients are attached to this terminal";
      (void)send(fd, refused.data(), refused.size(), MSG_NOSIGNAL);
      close(fd);
      continue;
    }
    Client& client = clients_.emplace_back();
    client.fd = fd;
    Queue(&client, "o" + history_);
  }
}

void Terminal::Receive(Client* client) {
  char buffer[kTerminalPacketBytes + 1];
  for (int i = 0; i < kPacketsPerTurn && client->fd >= 0 && input_.empty(); ++i) {
    const ssize_t n = recv(client->fd, buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return CloseFd(&client->fd);
    const std::string_view body(buffer + 1, static_cast<size_t>(n) - 1);
    if (buffer[0] == 'w') Resize(client, body);
    if (buffer[0] != 'i' || ended_) continue;
    input_ = body;
    WriteInput();
  }
}

// The first size of a client makes a program that fills the window draw it again, even if the size
// is the same.
void Terminal::Resize(Client* client, std::string_view sides) {
  unsigned rows = 0;
  unsigned columns = 0;
  if (std::sscanf(std::string(sides).c_str(), "%u %u", &rows, &columns) != 2) return;
  winsize size{};
  size.ws_row = static_cast<unsigned short>(std::clamp(rows, 1U, kMaxSide));
  size.ws_col = static_cast<unsigned short>(std::clamp(columns, 1U, kMaxSide));
  winsize before{};
  const bool known = ioctl(master_, TIOCGWINSZ, &before) == 0;
  const bool same = known && before.ws_row == size.ws_row && before.ws_col == size.ws_col;
  ioctl(master_, TIOCSWINSZ, &size);
  const pid_t group = Foreground();
  if (same && !client->sized && group > 0) kill(-group, SIGWINCH);
  sized_ = true;
  client->sized = true;
}

// The runtime makes its terminal some time after it has started.
void Terminal::TellSizeAgain(int64_t now_ns) {
  if (runtime_ == 0) return;
  if (std::exchange(sized_, false)) {
    tell_size_at_.clear();
    for (const int64_t ms : {0, 300, 1000, 3000}) tell_size_at_.push_back(now_ns + ms * 1'000'000);
  }
  winsize size{};
  while (!tell_size_at_.empty() && now_ns >= tell_size_at_.front()) {
    tell_size_at_.pop_front();
    if (ioctl(master_, TIOCGWINSZ, &size) == 0) SetSizeIn(runtime_, size);
  }
}

void Terminal::WriteInput() {
  while (!input_.empty()) {
    const ssize_t n = write(master_, input_.data(), input_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return input_.clear();
    input_.erase(0, static_cast<size_t>(n));
  }
}

// Returns false if there is nothing to read.
bool Terminal::ReadOutput(const Print& print) {
  char buffer[kTerminalPacketBytes];
  const ssize_t n = read(master_, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  const std::string_view data(buffer, static_cast<size_t>(n));
  print(data);
  for (Client& client : clients_) Queue(&client, "o" + std::string(data));
  history_ += data;
  if (history_.size() <= 2 * kTerminalHistoryBytes) return true;
  history_.erase(0, history_.size() - kTerminalHistoryBytes);
  const size_t line = history_.find('\n');
  if (line != std::string::npos && line + 1 < history_.size()) history_.erase(0, line + 1);
  return true;
}

bool Terminal::HasRoom() const {
  return std::all_of(clients_.begin(), clients_.end(),
                     [](const Client& client) { return client.bytes < kMaxQueuedBytes; });
}

// Long packets are divided.
void Terminal::Queue(Client* client, std::string packet) {
  if (client->fd < 0 || client->last) return;
  while (packet.size() > kTerminalPacketBytes + 1) {
    client->packets.push_back(packet.substr(0, kTerminalPacketBytes + 1));
    client->bytes += kTerminalPacketBytes + 1;
    packet.erase(1, kTerminalPacketBytes);
  }
  client->bytes += packet.size();
  client->packets.push_back(std::move(packet));
}

void Terminal::Flush(int64_t now_ns, Client* client) {
  bool took = false;
  while (client->fd >= 0 && !client->packets.empty()) {
    const std::string& packet = client->packets.front();
    const ssize_t n = send(client->fd, packet.data(), packet.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return CloseFd(&client->fd);
    if (n < 0) break;
    took = true;
    client->bytes -= packet.size();
    client->packets.pop_front();
  }
  if (client->packets.empty()) {
    client->stalled_ns = 0;
    if (client->last) CloseFd(&client->fd);
  } else if (took || client->stalled_ns == 0) {
    client->stalled_ns = now_ns;
  } else if (now_ns >= client->stalled_ns + kStallNs) {
    CloseFd(&client->fd);
  }
}

void Terminal::DropClosed() {
  std::erase_if(clients_, [](const Client& client) { return client.fd < 0; });
}

void Terminal::Drain(const Print& print) {
  for (int i = 0; i < kDrainReads && is_open() && !ended_ && ReadOutput(print); ++i) {
  }
}

void Terminal::End(int exit_code) {
  if (!is_open() || ended_) return;
  Accept();
  ended_ = true;
  runtime_ = 0;  // its number may become that of another process
  CloseFd(&listener_);
  for (Client& client : clients_) {
    Queue(&client, "x" + std::to_string(exit_code));
    client.last = true;
  }
}

void Terminal::Close() {
  const int64_t end_ns = BoottimeNs() + int64_t{kCloseMs} * 1'000'000;
  for (;;) {
    for (Client& client : clients_) Flush(BoottimeNs(), &client);
    DropClosed();
    const int64_t left_ms = (end_ns - BoottimeNs()) / 1'000'000;
    if (clients_.empty() || left_ms <= 0) break;
    std::vector<pollfd> fds;
    for (const Client& client : clients_) fds.push_back({client.fd, POLLOUT, 0});
    if (poll(fds.data(), fds.size(), static_cast<int>(left_ms)) < 0 && errno != EINTR) break;
  }
}

}  // namespace berth
