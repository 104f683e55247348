#include "clients/agent/supervisor/spec.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <functional>
#include <string_view>

namespace berth {
namespace {

void Put(std::string* out, std::string_view key, std::string_view value) {
  out->append(key).push_back('=');
  out->append(value).push_back('\0');
}
void Put(std::string* out, std::string_view key, int64_t value) {
  Put(out, key, std::to_string(value));
}

int64_t Number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Calls `field` for each; false if the text is cut off or has something else in it.
bool ForEachField(std::string_view text,
                  const std::function<bool(std::string_view key, std::string_view value)>& field) {
  while (!text.empty()) {
    const size_t end = text.find('\0');
    const size_t equals = text.find('=');
    if (end == std::string_view::npos || equals == std::string_view::npos || equals > end)
      return false;
    if (!field(text.substr(0, equals), text.substr(equals + 1, end - equals - 1))) return false;
    text.remove_prefix(end + 1);
  }
  return true;
}

int WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

int SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error;
}

}  // namespace

std::string EncodeSpec(const SupervisorSpec& spec) {
  std::string out;
  Put(&out, "user", spec.user);
  Put(&out, "allow_root", spec.allow_root ? 1 : 0);
  Put(&out, "directory", spec.directory);
  for (const std::string& arg : spec.argv) Put(&out, "arg", arg);
  for (const std::string& entry : spec.env) Put(&out, "env", entry);
  Put(&out, "log_file_bytes", spec.log_file_bytes);
  Put(&out, "log_files", spec.log_files);
  Put(&out, "lease_file", spec.lease_file);
  Put(&out, "lapse_signal", spec.lapse_signal);
  Put(&out, "lapse_grace_ms", spec.lapse_grace_ms);
  return out;
}

bool DecodeSpec(const std::string& text, SupervisorSpec* spec) {
  *spec = {};
  return ForEachField(text, [&](std::string_view key, std::string_view value) {
    if (key == "user")
      spec->user = value;
    else if (key == "allow_root")
      spec->allow_root = value == "1";
    else if (key == "directory")
      spec->directory = value;
    else if (key == "arg")
      spec->argv.emplace_back(value);
    else if (key == "env")
      spec->env.emplace_back(value);
    else if (key == "log_file_bytes")
      spec->log_file_bytes = Number(value);
    else if (key == "log_files")
      spec->log_files = Number(value);
    else if (key == "lease_file")
      spec->lease_file = value;
    else if (key == "lapse_signal")
      spec->lapse_signal = Number(value);
    else if (key == "lapse_grace_ms")
      spec->lapse_grace_ms = Number(value);
    else
      return false;
    return true;
  });
}

std::string EncodeStatus(const SupervisorStatus& status) {
  std::string out;
  Put(&out, "phase", status.phase);
  Put(&out, "supervisor_pid", status.supervisor_pid);
  Put(&out, "pid", status.pid);
  Put(&out, "exit_code", status.exit_code);
  Put(&out, "exit_signal", status.exit_signal);
  Put(&out, "cause", status.cause);
  Put(&out, "message", status.message);
  return out;
}

bool DecodeStatus(const std::string& text, SupervisorStatus* status) {
  *status = {};
  return ForEachField(text, [&](std::string_view key, std::string_view value) {
    if (key == "phase")
      status->phase = Number(value);
    else if (key == "supervisor_pid")
      status->supervisor_pid = Number(value);
    else if (key == "pid")
      status->pid = Number(value);
    else if (key == "exit_code")
      status->exit_code = Number(value);
    else if (key == "exit_signal")
      status->exit_signal = Number(value);
    else if (key == "cause")
      status->cause = Number(value);
    else if (key == "message")
      status->message = value;
    return true;  // a newer supervisor may say more
  });
}

int ReadWholeFile(const std::string& path, std::string* out) {
  out->clear();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char buffer[65536];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    const int error = errno;
    if (n > 0) {
      out->append(buffer, static_cast<size_t>(n));
      continue;
    }
    close(fd);
    return n == 0 ? 0 : error;
  }
}

int WriteFileAtomically(const std::string& directory, const std::string& name,
                        const std::string& data) {
  const std::string path = directory + "/" + name;
  const std::string temporary = path + ".tmp";
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  int error = WriteAll(fd, data);
  if (error == 0 && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  return error != 0 ? error : SyncDirectory(directory);
}

int64_t BoottimeNs() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace berth
