#include "clients/agent/supervisor/notify_socket.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int64_t kNotifyMs = 1'000'000;  // in nanoseconds
constexpr int64_t kWriteIntervalNs = 500 * kNotifyMs;
constexpr int64_t kWriteRetryNs = 5000 * kNotifyMs;  // the disk is full
constexpr int64_t kFloodPauseNs = 5 * kNotifyMs;
constexpr int kNoticesPerTurn = 64;
constexpr int64_t kLongestTurnNs = 200 * kNotifyMs;
constexpr int kMostLeft = 4096;  // datagrams that are read at the end
constexpr int64_t kLongestEndNs = 1000 * kNotifyMs;
constexpr suseconds_t kLongestCloseUs = 20'000;

// Closing a descriptor that came with a datagram may block, such as a socket that lingers, and then
// nobody would enforce the task's lease. While an object of this class lives, a signal interrupts
// such waits.
class CloseTimer {
 public:
  CloseTimer() { Set(kLongestCloseUs); }
  ~CloseTimer() { Set(0); }

 private:
  static void Set(suseconds_t us) {
    const itimerval timer{.it_interval = {.tv_sec = 0, .tv_usec = us},
                          .it_value = {.tv_sec = 0, .tv_usec = us}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
};

void CatchAlarms() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
}

int BindTo(const std::string& path, int fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const mode_t before = umask(0177);
  const int error =
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  umask(before);
  return error;
}

int MakeFile(const std::string& path) {
  if (path.empty()) return 0;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

}  // namespace

NotifySocket::NotifySocket(const std::string& task_directory)
    : directory_(task_directory + kProgressDirectory) {}

NotifySocket::~NotifySocket() {
  if (fd_ >= 0) close(fd_);
}

int NotifySocket::Open(const std::string& path, int64_t uid, const std::string& place) {
  CatchAlarms();
  path_ = path;
  place_ = place;
  if (mkdir(directory_.c_str(), 0700) != 0) return errno;
  if (const int error = MakeFile(place); error != 0) return error;
  fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return errno;
  if (const int error = BindTo(path, fd_); error != 0) return error;
  if (uid < 0 || static_cast<uid_t>(uid) == geteuid()) return 0;
  return lchown(path.c_str(), static_cast<uid_t>(uid), static_cast<gid_t>(-1)) == 0 ? 0 : errno;
}

int64_t NotifySocket::NextNs() const {
  const int64_t write_ns = unwritten_ ? std::max<int64_t>(write_ns_, 1) : 0;
  if (write_ns == 0 || resume_ns_ == 0) return std::max(write_ns, resume_ns_);
  return std::min(write_ns, resume_ns_);
}

void NotifySocket::Work(int64_t now_ns, bool readable) {
  const bool resumed = resume_ns_ != 0 && now_ns >= resume_ns_;
  if (resumed) resume_ns_ = 0;
  if (readable || resumed) Read(now_ns, kNoticesPerTurn, kLongestTurnNs);
  if (unwritten_ && now_ns >= write_ns_) Write(now_ns);
}

void NotifySocket::Close(int64_t now_ns) {
  if (fd_ < 0) return;
  Read(now_ns, kMostLeft, kLongestEndNs);
  if (unwritten_) Write(now_ns);
  const CloseTimer timer;  // there may be more
  close(fd_);
  fd_ = -1;
  unwritten_ = false;
  resume_ns_ = 0;
  unlink(path_.c_str());
  if (!place_.empty()) unlink(place_.c_str());
}

// Without a buffer for them, the kernel closes the descriptors of a datagram as it is received.
void NotifySocket::Read(int64_t now_ns, int most, int64_t longest_ns) {
  const CloseTimer timer;
  char buffer[kMaxNoticeBytes];
  bool refused = false;
  for (int i = 0; i < most && BoottimeNs() < now_ns + longest_ns; ++i) {
    iovec piece{.iov_base = buffer, .iov_len = sizeof buffer};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const ssize_t n = recvmsg(fd_, &message, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    if (limit_.Take(now_ns)) {
      Take({buffer, static_cast<size_t>(n)}, (message.msg_flags & MSG_TRUNC) == 0, now_ns);
    } else {
      refused = true;
      ++notices_.dropped;
      unwritten_ = true;
    }
  }
  // A program that sends without end gets few turns.
  if (refused) resume_ns_ = now_ns + kFloodPauseNs;
}

void NotifySocket::Take(std::string_view datagram, bool whole, int64_t now_ns) {
  const Notices before = notices_;
  if (whole)
    AddNotice(ParseNotice(datagram), now_ns, &notices_);
  else
    ++notices_.dropped;
  unwritten_ = unwritten_ || before != notices_;
}

void NotifySocket::Write(int64_t now_ns) {
  const int error = ReplaceFile(directory_, kNoticesFile, EncodeNotices(notices_));
  unwritten_ = error != 0;
  write_ns_ = now_ns + (error == 0 ? kWriteIntervalNs : kWriteRetryNs);
}

}  // namespace berth
