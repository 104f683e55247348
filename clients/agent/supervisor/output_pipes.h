// The pipes by which a supervisor gets what a command prints. The write ends stay open for
// processes that start later; the end of output follows from the end of all processes, not of the
// pipes.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_OUTPUT_PIPES_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_OUTPUT_PIPES_H_

#include <poll.h>

#include <cstdint>
#include <vector>

#include "clients/agent/supervisor/log_writer.h"

namespace berth {

class OutputPipes {
 public:
  OutputPipes() = default;
  ~OutputPipes();
  OutputPipes(const OutputPipes&) = delete;
  OutputPipes& operator=(const OutputPipes&) = delete;

  int Open();  // returns an errno
  int out_end() const { return ends_[0]; }
  int err_end() const { return ends_[1]; }
  void AddTo(std::vector<pollfd>* fds) const;
  // What is there now, at most 1 MiB of each stream, so that others get a turn.
  void Read(LogWriter& log, int64_t unix_ms);

 private:
  int read_[2] = {-1, -1};
  int ends_[2] = {-1, -1};
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_OUTPUT_PIPES_H_
