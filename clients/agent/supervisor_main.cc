// berth-supervisor TASK_DIR: holds one task (supervisor/supervisor.h). Spawned by berth-agent with
// the lock of the directory as fd 3.
// berth-supervisor --exec|--exec-tty TASK_DIR COMMAND...: becomes a command inside the task
// (supervisor/enter.h).
// berth-supervisor --connect TASK_DIR PORT: connects to a port inside the task
// (supervisor/enter.h).
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "clients/agent/supervisor/enter.h"
#include "clients/agent/supervisor/supervisor.h"

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (argc >= 4 && (first == "--exec" || first == "--exec-tty")) {
    return berth::ExecInTask(argv[2], first == "--exec-tty",
                             std::vector<std::string>(argv + 3, argv + argc));
  }
  if (argc == 4 && first == "--connect")
    return berth::ConnectInTask(argv[2], static_cast<uint16_t>(std::atoi(argv[3])));
  if (argc != 2) {
    std::fprintf(stderr, "usage: berth-supervisor TASK_DIR (spawned by berth-agent)\n");
    return 2;
  }
  fcntl(berth::kSupervisorLockFd, F_SETFD, FD_CLOEXEC);  // held for the life of this process
  return berth::Supervisor(argv[1]).Run();
}
