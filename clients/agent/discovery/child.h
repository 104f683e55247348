// Helpers to start a child process and talk to it through pipes.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_CHILD_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_CHILD_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

namespace berth::discovery {

// A descriptor that closes itself; -1 = none.
class Fd {
 public:
  Fd() = default;
  ~Fd() { Close(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  void Set(int fd) { fd_ = fd; }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read.Set(ends[0]);
    write.Set(ends[1]);
    return true;
  }
};

// The two setup objects of posix_spawn, freed by the destructor.
struct SpawnSetup {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSetup() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  // `in`, `err` < 0: /dev/null. The agent blocks and ignores signals; its child must not.
  void Describe(int in, int out, int err) {
    if (in < 0) {
      posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    } else {
      posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    }
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (err < 0) {
      posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    } else {
      posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    }
    sigset_t none;
    sigset_t defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
};

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_CHILD_H_
