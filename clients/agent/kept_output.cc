#include "clients/agent/kept_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "clients/agent/supervisor/spec.h"
#include "clients/agent/task_files.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr int64_t kOutputBlockBytes = 512;

struct Output {
  timespec ended{};
  std::string directory;
  std::vector<std::string> files;
  int64_t bytes = 0;
};

bool IsOutput(const std::string& file) {
  for (const char* prefix : {"stdout.", "stderr.", "order.", "times."}) {
    if (absl::StartsWith(file, prefix)) return true;
  }
  return false;
}

void AddOutputIn(const std::string& directory, Output* output) {
  std::error_code ignored;
  struct stat info;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (!IsOutput(entry.path().filename()) || lstat(entry.path().c_str(), &info) != 0) continue;
    output->files.push_back(entry.path());
    output->bytes += int64_t{info.st_blocks} * kOutputBlockBytes;
  }
}

// Also of its containers.
Output OutputOf(const std::string& directory) {
  Output output;
  output.directory = directory;
  struct stat info;
  if (stat((directory + "/status").c_str(), &info) == 0) output.ended = info.st_mtim;
  AddOutputIn(directory, &output);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory + kContainers, ignored)) {
    AddOutputIn(entry.path(), &output);
  }
  return output;
}

std::vector<Output> OutputOfEndedTasks(const std::string& tasks_directory,
                                       const std::set<std::string>& live) {
  std::vector<Output> outputs;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(tasks_directory, ignored)) {
    if (live.contains(entry.path().filename()) || !HasEnded(entry.path())) continue;
    Output output = OutputOf(entry.path());
    if (!output.files.empty()) outputs.push_back(std::move(output));
  }
  std::sort(outputs.begin(), outputs.end(), [](const Output& a, const Output& b) {
    return std::tie(a.ended.tv_sec, a.ended.tv_nsec, a.directory) <
           std::tie(b.ended.tv_sec, b.ended.tv_nsec, b.directory);
  });
  return outputs;
}

}  // namespace

bool HasEnded(const std::string& task_directory) {
  const SupervisorStatus status = ReadStatus(task_directory);
  return status.phase == SupervisorStatus::kExited || status.phase == SupervisorStatus::kRefused;
}

void TrimOutput(const std::string& tasks_directory, const std::set<std::string>& live,
                int64_t max_bytes, absl::FunctionRef<bool()> short_of_room) {
  const std::vector<Output> outputs = OutputOfEndedTasks(tasks_directory, live);
  int64_t kept = 0, removed = 0, tasks = 0;
  for (const Output& output : outputs) kept += output.bytes;
  for (const Output& output : outputs) {
    if (kept <= max_bytes && !short_of_room()) break;
    for (const std::string& file : output.files) unlink(file.c_str());
    kept -= output.bytes;
    removed += output.bytes;
    ++tasks;
  }
  if (tasks == 0) return;
  LogInfo("removed the oldest output of ended tasks to free space",
          {{"tasks", tasks}, {"bytes", removed}, {"kept_bytes", kept}});
}

}  // namespace berth
