#include "clients/agent/leftovers.h"

#include <dirent.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

// State (field 3) and session (field 6) of /proc/PID/stat.
bool ReadStat(const std::string& proc, char* state, int* session) {
  std::string text;
  if (ReadWholeFile(proc + "/stat", &text) != 0) return false;
  const size_t name_end = text.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos) return false;
  return std::sscanf(text.c_str() + name_end + 1, " %c %*d %*d %d", state, session) == 2;
}

bool HasMarker(const std::string& proc, absl::string_view marker) {
  std::string text;
  if (ReadWholeFile(proc + "/environ", &text) != 0) return false;
  const absl::string_view environment = text;
  size_t at = 0;
  while ((at = environment.find(marker, at)) != absl::string_view::npos) {
    const size_t end = at + marker.size();
    if ((at == 0 || environment[at - 1] == '\0') &&
        (end == environment.size() || environment[end] == '\0')) {
      return true;
    }
    at = end;
  }
  return false;
}

}  // namespace

int KillLeftovers(const std::string& marker, pid_t session) {
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return 0;
  int found = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const std::string proc = std::string("/proc/") + entry->d_name;
    char state = 0;
    int own_session = 0;
    if (!ReadStat(proc, &state, &own_session) || state == 'Z' || state == 'X') continue;
    if (!(session > 0 && own_session == session) && !HasMarker(proc, marker)) continue;
    kill(static_cast<pid_t>(std::atol(entry->d_name)), SIGKILL);
    ++found;
  }
  closedir(directory);
  return found;
}

}  // namespace berth
