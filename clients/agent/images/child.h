// Runs one program (umoci, skopeo) in a child process that ends before the caller goes on, and dies
// with the caller.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_CHILD_H_
#define BERTH_CLIENTS_AGENT_IMAGES_CHILD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace berth {

struct Child {
  std::string program;  // absolute
  std::vector<std::string> argv;
  std::string directory;       // where it starts
  int64_t max_file_bytes = 0;  // it writes no file above this size
  size_t max_output = 0;       // more standard output is dropped
};

struct ChildEnd {
  int status = 0;       // as waitpid gives it
  std::string output;   // standard output
  std::string message;  // the first bytes of standard error
};

// `watch` is called about ten times a second; if it returns an error, the program is killed and the
// error is returned. INTERNAL: no process can be made.
absl::StatusOr<ChildEnd> RunChild(const Child& child, const std::function<absl::Status()>& watch);

bool Succeeded(const ChildEnd& end);
// "code 1", "killed by signal 9".
std::string HowItEnded(const ChildEnd& end);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_CHILD_H_
