// Child processes of a benchmark: berthd and simulated agents, with their figures from /proc.
#ifndef BERTH_TESTS_BENCH_PROCESS_H_
#define BERTH_TESTS_BENCH_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace berth::bench {

// A temporary directory, removed with its content.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A child process; killed when it goes out of scope, or when berth-bench dies.
class Process {
 public:
  // Output is appended to `log`.
  Process(std::vector<std::string> arguments, std::string log);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Kill();  // SIGKILL, then waits
  void Stop();  // SIGSTOP
  bool Running();
  double CpuSeconds() const;      // user and system so far
  int64_t ResidentBytes() const;  // now
  int64_t PeakResidentBytes() const;
  std::string LogTail() const;  // the last 2 KiB of its output

 private:
  int64_t StatusKib(const std::string& key) const;

  std::string log_;
  pid_t pid_ = -1;
};

// A TCP port of the loopback address that was free a moment ago.
int FreePort();
// Whether this port of the loopback address accepts connections.
bool PortAnswers(int port);

void WriteFile(const std::string& path, const std::string& text);

}  // namespace berth::bench

#endif  // BERTH_TESTS_BENCH_PROCESS_H_
