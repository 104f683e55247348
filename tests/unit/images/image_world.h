// An image cache and berth-image, the real program, for tests.
#ifndef BERTH_TESTS_UNIT_IMAGES_IMAGE_WORLD_H_
#define BERTH_TESTS_UNIT_IMAGES_IMAGE_WORLD_H_

#include <google/protobuf/util/json_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "berth/agent/v1/image.pb.h"

namespace berth::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-image-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One run of berth-image.
class ImageProgram {
 public:
  explicit ImageProgram(const agent::v1::ImageRequest& request) {
    std::string json;
    REQUIRE(google::protobuf::util::MessageToJsonString(request, &json).ok());
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "berth-image";
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid = fork();
    if (pid == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execl(program.c_str(), program.c_str(), json.c_str(), nullptr);
      _exit(126);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~ImageProgram() {
    if (output_ >= 0) close(output_);
  }
  void StopListening() {
    close(output_);
    output_ = -1;
  }
  // Returns "" on success, otherwise the output of the program.
  std::string Wait() {
    std::string words;
    char buffer[4096];
    ssize_t n;
    while (output_ >= 0 && (n = read(output_, buffer, sizeof buffer)) > 0)
      words.append(buffer, static_cast<size_t>(n));
    int status = 0;
    waitpid(pid, &status, 0);
    exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
    if ((WEXITSTATUS(status) == 0) != words.empty() && output_ >= 0)
      return "exit code " + std::to_string(WEXITSTATUS(status)) + " with words: " + words;
    return words;
  }

  pid_t pid = -1;
  int exit_code = -1;  // set by Wait

 private:
  int output_ = -1;
};

inline std::string RunImageProgram(const agent::v1::ImageRequest& request) {
  return ImageProgram(request).Wait();
}

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_IMAGES_IMAGE_WORLD_H_
