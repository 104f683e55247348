// Runs whole command lines against a server whose answers the test gives.
#ifndef BERTH_TESTS_UNIT_CLI_CLI_HARNESS_H_
#define BERTH_TESTS_UNIT_CLI_CLI_HARNESS_H_

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cli/app.h"
#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/fake_world.h"

namespace berth {

class Cli {
 public:
  // Runs `berth --server FAKE ARGUMENTS...`. out() and err() are those of this run.
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", server.address()});
    return RunBare(arguments);
  }
  int RunBare(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    std::istringstream in(answer);
    return RunBerth(arguments, {out_, err_, terminal, no_color, absl::UTCTimeZone(),
                                world.environment(), &in, in_terminal, width});
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }

  FakeServer server;
  Script& script = server.script;
  FakeWorld world;
  bool terminal = false;
  bool no_color = false;
  bool in_terminal = false;
  size_t width = 0;
  std::string answer;  // typed at a question

 private:
  std::ostringstream out_;
  std::ostringstream err_;
};

// A file that is removed after the test.
class TempFile {
 public:
  explicit TempFile(const std::string& text) : path_(std::tmpnam(nullptr)) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline v1::Job MakeJob(const std::string& name, v1::JobState state, int64_t age_s = 192) {
  v1::Job job;
  job.set_name(name);
  job.set_uid(7);
  job.mutable_spec()->set_queue("research");
  v1::TaskGroup& group = *job.mutable_spec()->add_groups();
  group.set_name("worker");
  group.set_replicas(4);
  group.add_command("train");
  job.mutable_status()->set_state(state);
  v1::GroupStatus& status = *job.mutable_status()->add_groups();
  status.set_name("worker");
  (*status.mutable_tasks())["RUNNING"] = state == v1::JOB_RUNNING ? 4 : 0;
  job.mutable_status()->mutable_submit_time()->set_seconds(1'795'003'600 - age_s);
  return job;
}

inline v1::SubmitJobsResponse Submitted(const std::string& name) {
  v1::SubmitJobsResponse response;
  response.add_jobs()->set_name(name);
  return response;
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_CLI_CLI_HARNESS_H_
