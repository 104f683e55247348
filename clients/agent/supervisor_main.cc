// berth-supervisor TASK_DIR: holds one task (supervisor/supervisor.h). Spawned by berth-agent, with
// the lock of the directory as fd 3.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "clients/agent/supervisor/supervisor.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: berth-supervisor TASK_DIR (spawned by berth-agent)\n");
    return 2;
  }
  fcntl(berth::kSupervisorLockFd, F_SETFD, FD_CLOEXEC);  // held for as long as this process lives
  return berth::Supervisor(argv[1]).Run();
}
