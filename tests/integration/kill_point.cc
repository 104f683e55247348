// To be preloaded: kills its own process (SIGKILL) right before or right after the N-th call of one
// kind. The file KILL_POINT (struct Order) selects the call; it may change at any time and is
// shared with the programs that this one starts. tests/integration/kill_points.py writes it.
// Nothing here allocates or reads the time: jemalloc calls it before anything is initialized.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct Order {
  int64_t left;      // calls until the kill; 0 and below: disarmed
  int64_t after;     // 1: right after the call, 0: right before it
  char program[32];  // the name with which it was started
  char call[16];
  char inside[128];  // the path contains this
  char ends[32];     // and ends with this
};

Order* TheOrder() {
  static Order none = {};
  static Order* order = nullptr;
  if (order != nullptr) return order;
  const char* path = getenv("KILL_POINT");
  const int fd = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  void* at =
      fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Order), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (at == MAP_FAILED) return &none;  // called before the environment exists: retry next time
  order = static_cast<Order*>(at);
  return order;
}

bool EndsWith(const char* text, const char* end) {
  const size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool Matches(const Order& order, const char* call, const char* path) {
  return strcmp(order.call, call) == 0 &&
         strcmp(order.program, program_invocation_short_name) == 0 &&
         strstr(path, order.inside) != nullptr && EndsWith(path, order.ends);
}

void KillMyself() {
  syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  for (;;) pause();
}

// Guards a call, and kills the process before or after the selected one.
class Around {
 public:
  Around(const char* call, const char* path) {
    Order* order = TheOrder();
    if (__atomic_load_n(&order->left, __ATOMIC_ACQUIRE) <= 0 || !Matches(*order, call, path))
      return;
    meant_ = __atomic_fetch_sub(&order->left, 1, __ATOMIC_ACQ_REL) == 1;
    if (meant_ && order->after == 0) KillMyself();
  }
  ~Around() {
    if (meant_) KillMyself();
  }
  void Forget() { meant_ = false; }

 private:
  bool meant_ = false;
};

// The path that a descriptor refers to.
struct Path {
  explicit Path(int fd) {
    text[0] = 0;
    if (__atomic_load_n(&TheOrder()->left, __ATOMIC_RELAXED) <= 0) return;
    char link[32] = "/proc/self/fd/", digits[12];
    int count = 0;
    for (unsigned rest = static_cast<unsigned>(fd); rest > 0 || count == 0; rest /= 10)
      digits[count++] = static_cast<char>('0' + rest % 10);
    char* end = link + strlen(link);
    while (count > 0) *end++ = digits[--count];
    *end = 0;
    const int error = errno;
    const long length = syscall(SYS_readlink, link, text, sizeof text - 1);
    errno = error;
    text[length > 0 ? length : 0] = 0;
  }
  char text[512];
};

}  // namespace

extern "C" {

ssize_t write(int fd, const void* data, size_t bytes) {
  const Around around("write", Path(fd).text);
  return syscall(SYS_write, fd, data, bytes);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  const Around around("write", Path(fd).text);
  return syscall(SYS_pwrite64, fd, data, bytes, at);
}

int fsync(int fd) {
  const Around around("sync", Path(fd).text);
  return static_cast<int>(syscall(SYS_fsync, fd));
}

int fdatasync(int fd) {
  const Around around("sync", Path(fd).text);
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  const Around around("send", "");
  return syscall(SYS_sendmsg, socket, message, flags);
}

int rename(const char* from, const char* to) noexcept {
  const Around around("rename", to);
  return static_cast<int>(syscall(SYS_rename, from, to));
}

int unlink(const char* path) noexcept {
  const Around around("unlink", path);
  return static_cast<int>(syscall(SYS_unlink, path));
}

int mkdir(const char* path, mode_t mode) noexcept {
  const Around around("mkdir", path);
  return static_cast<int>(syscall(SYS_mkdir, path, mode));
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const argv[], char* const env[]) {
  static const auto next =
      reinterpret_cast<decltype(&posix_spawn)>(dlsym(RTLD_NEXT, "posix_spawn"));
  const Around around("spawn", path);
  return next(pid, path, actions, attributes, argv, env);
}

// Right after the call only the parent is killed: the child continues without it.
pid_t fork() noexcept {
  static const auto next = reinterpret_cast<decltype(&fork)>(dlsym(RTLD_NEXT, "fork"));
  Around around("fork", "");
  const pid_t pid = next();
  if (pid == 0) around.Forget();
  return pid;
}

}  // extern "C"
