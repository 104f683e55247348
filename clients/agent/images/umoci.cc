#include "clients/agent/images/umoci.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/agent/images/file_tree.h"

namespace berth {
namespace {

constexpr int kWatchMs = 100;
constexpr size_t kMaxWordsBytes = 1000;
constexpr char kTag[] = "image";
constexpr char kPath[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file.good() ? absl::OkStatus() : ErrnoError(absl::StrCat("write ", path));
}

void Limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit = {value, value};
  setrlimit(resource, &limit);
}

// Runs in the child after fork.
[[noreturn]] void Become(const std::string& umoci, const std::string& directory, int errors,
                         int64_t max_file_bytes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  for (const int signal : {SIGPIPE, SIGTERM}) ::signal(signal, SIG_DFL);
  Limit(RLIMIT_FSIZE, static_cast<rlim_t>(max_file_bytes));
  Limit(RLIMIT_CORE, 0);
  umask(022);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::string image = absl::StrCat("layout:", kTag);
  const char* argv[] = {"umoci",   "--log=error", "raw",    "unpack",
                        "--image", image.c_str(), "rootfs", nullptr};
  const char* env[] = {kPath, nullptr};
  if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(errors, 2) >= 0 &&
      chdir(directory.c_str()) == 0) {
    execve(umoci.c_str(), const_cast<char**>(argv), const_cast<char**>(env));
  }
  dprintf(errors, "%s: %s", umoci.c_str(), std::strerror(errno));
  _exit(127);
}

// Collects umoci's error output until it ends or `watch` returns an error.
absl::Status Listen(int errors, const std::function<absl::Status()>& watch, std::string* words) {
  char buffer[4096];
  for (;;) {
    if (absl::Status status = watch(); !status.ok()) return status;
    pollfd fd = {errors, POLLIN, 0};
    if (poll(&fd, 1, kWatchMs) <= 0) continue;
    const ssize_t n = read(errors, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::OkStatus();
    words->append(buffer, static_cast<size_t>(n));
    if (words->size() > kMaxWordsBytes) words->resize(kMaxWordsBytes);
  }
}

// "   ⨯ create rootfs: unpack layer: ..." without the leading symbol.
std::string Plain(absl::string_view words) {
  words = absl::StripAsciiWhitespace(words);
  absl::ConsumePrefix(&words, "\xE2\xA8\xAF");
  return absl::Utf8SafeCHexEscape(absl::StripAsciiWhitespace(words));
}

absl::Status Result(int status, const std::string& words) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  const std::string how = WIFSIGNALED(status) ? absl::StrCat("killed by signal ", WTERMSIG(status))
                                              : absl::StrCat("code ", WEXITSTATUS(status));
  const std::string text = absl::StrCat("umoci failed (", how, "): ", Plain(words));
  // SIGXFSZ: a file exceeds the maximum size of an image.
  const bool by_others = WIFSIGNALED(status) && WTERMSIG(status) != SIGXFSZ;
  return by_others ? absl::InternalError(text) : absl::AbortedError(text);
}

}  // namespace

absl::Status MakeSingleLayout(const OciImage& image, const std::string& layout,
                              const std::string& directory) {
  const std::string own = directory + "/layout";
  if (mkdir(own.c_str(), 0700) != 0) return ErrnoError(absl::StrCat("create ", own));
  if (symlink((layout + "/blobs").c_str(), (own + "/blobs").c_str()) != 0)
    return ErrnoError(absl::StrCat("create ", own, "/blobs"));
  const std::string index = absl::StrCat(
      "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"", image.descriptor.media_type(),
      "\",\"digest\":\"", image.descriptor.digest(), "\",\"size\":", image.descriptor.size(),
      ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"", kTag, "\"}}]}");
  absl::Status status = WriteText(own + "/oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
  if (status.ok()) status = WriteText(own + "/index.json", index);
  return status;
}

absl::Status RunUmoci(const std::string& umoci, const std::string& directory,
                      int64_t max_file_bytes, const std::function<absl::Status()>& watch) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return ErrnoError("pipe");
  const pid_t pid = fork();
  if (pid == 0) Become(umoci, directory, pipe[1], max_file_bytes);
  close(pipe[1]);
  if (pid < 0) {
    close(pipe[0]);
    return ErrnoError("fork");
  }
  std::string words;
  const absl::Status watched = Listen(pipe[0], watch, &words);
  if (!watched.ok()) kill(pid, SIGKILL);
  close(pipe[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return watched.ok() ? Result(status, words) : watched;
}

}  // namespace berth
