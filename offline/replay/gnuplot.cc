#include "offline/replay/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace berth::replay {
namespace {

constexpr char kMissing[] =
    "plots need gnuplot, which is not installed: apt-get install gnuplot-nox";

// The exit status of `gnuplot ARGUMENT` in the folder.
absl::StatusOr<int> Spawn(const std::string& folder, std::string argument) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  std::string program = "gnuplot";
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return absl::FailedPreconditionError(kMissing);
  if (error != 0) {
    return absl::InternalError(absl::StrCat("cannot start gnuplot: ", std::strerror(error)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

absl::Status FindGnuplot() { return Spawn("/", "--version").status(); }

absl::Status RunGnuplot(const std::string& folder, const std::string& script) {
  const absl::StatusOr<int> status = Spawn(folder, script);
  if (!status.ok()) return status.status();
  if (*status == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("gnuplot failed on ", folder, "/", script));
}

}  // namespace berth::replay
