// Terminals of pages in tasks: Exec as server-sent events, and calls that bring the input.
//
//   page  -- POST /api/terminal -------> Terminals::Open --> Exec (berthd decides who may)
//         <- events opened, output, end
//         -- POST /api/terminal/input -> Terminals::Input, by the id, of the same session only
//
// The command ends with the page's connection. The next output is read from berthd when the
// connection has taken the last one, so a command that prints without end waits for the page.
#ifndef BERTH_CLIENTS_WEB_TERMINAL_H_
#define BERTH_CLIENTS_WEB_TERMINAL_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "berth/web/v1/api.pb.h"
#include "clients/web/event_stream.h"
#include "clients/web/upstream.h"

namespace berth::web {

class Terminal;

// Those that are open. Thread-safe.
class Terminals {
 public:
  // `session`: whose it is; `ended`: once.
  std::shared_ptr<EventStream> Open(const void* session, const std::shared_ptr<Upstream>& upstream,
                                    const berth::v1::ExecRequest::Open& open,
                                    std::function<void()> ended) ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND: it has ended, or is another session's. INVALID_ARGUMENT: too long.
  // RESOURCE_EXHAUSTED: the command does not read.
  absl::Status Input(const void* session, const v1::TerminalInput& input)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends those of a session that is over.
  void EndOf(const void* session) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    const void* session = nullptr;
    std::weak_ptr<Terminal> terminal;
  };

  absl::Mutex mutex_;
  std::map<std::string, Entry> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_TERMINAL_H_
