// What every command of `berth` works with: the terminal, the global options, the client.
#ifndef BERTH_CLIENTS_CLI_SESSION_H_
#define BERTH_CLIENTS_CLI_SESSION_H_

#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/table.h"
#include "clients/cpp/client.h"

namespace berth {

enum class Format { kTable, kWide, kJson, kYaml, kName };
enum class ColorMode { kAuto, kAlways, kNever };

// The world outside. Everything referred to outlives the session.
struct CliIo {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool no_color = false;  // NO_COLOR is set
  absl::TimeZone time_zone;
  ClientEnvironment environment;
  std::istream* in = nullptr;  // answers to questions; asked only of a terminal
  bool in_is_terminal = false;
  size_t width = 0;  // of the terminal that `out` is, in columns; 0: none, or unknown
};

struct GlobalOptions {
  ClientOptions client;
  Format format = Format::kTable;
  bool format_given = false;
  bool no_headers = false;
  ColorMode color = ColorMode::kAuto;
};

class Session;
// A chosen command, run after the whole command line was understood.
using Action = std::function<ExitCode(Session&)>;

class Session {
 public:
  explicit Session(const CliIo& io) : io_(io) {}

  GlobalOptions options;
  Action action;

  std::ostream& out() { return io_.out; }
  std::ostream& err() { return io_.err; }
  const CliIo& io() const { return io_; }
  absl::Time Now() const { return io_.environment.clock->Now(); }
  bool colors() const;
  TableStyle table_style() const;

  // Opened at the first call. What it answers is safe to show (support/visible_message.h), unless
  // the format escapes by its own rules (JSON, YAML) or exact_answers is set.
  absl::StatusOr<Client*> client();
  // As long as it is set: answers are compared or sent back, and what is shown of them goes through
  // Visible.
  bool exact_answers = false;
  // client()->Call(...).
  template <class Stub, class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    const absl::StatusOr<Client*> opened = client();
    if (!opened.ok()) return opened.status();
    return (*opened)->Call(method, request);
  }

  // Where the next of the output's documents goes: those of YAML are parted by a line "---".
  std::ostream& NextDocument();

  // Tells an error on standard error, each violation on a line of its own, and gives its exit code.
  // OK is silent.
  ExitCode Finish(const absl::Status& status);
  // In one line, whatever is in the text.
  void Warn(absl::string_view text);
  bool saw_unsynced() const { return client_ != nullptr && client_->saw_unsynced(); }

 private:
  CliIo io_;
  bool has_document_ = false;
  std::unique_ptr<Client> client_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_SESSION_H_
