// The context of every command of `berth`: the terminal, the global options, the client.
#ifndef BERTH_CLIENTS_CLI_SESSION_H_
#define BERTH_CLIENTS_CLI_SESSION_H_

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/table.h"
#include "clients/cpp/client.h"
#include "clients/session/identity.h"

namespace berth {

enum class Format { kTable, kWide, kJson, kYaml, kName, kCsv };
enum class ColorMode { kAuto, kAlways, kNever };

// The environment. Everything referred to must outlive the session.
struct CliIo {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool no_color = false;  // NO_COLOR is set
  absl::TimeZone time_zone;
  ClientEnvironment environment;
  std::istream* in = nullptr;  // answers to questions; only a terminal is asked
  bool in_is_terminal = false;
  size_t width = 0;  // columns of the terminal `out`; 0: no terminal, or unknown
  bool err_is_terminal = false;
};

struct GlobalOptions : ConnectionOptions {
  Format format = Format::kTable;
  bool format_given = false;
  bool no_headers = false;
  ColorMode color = ColorMode::kAuto;
};

class Session;
// The selected command. It runs after the whole command line is parsed.
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

  // Connects at the first call. Responses are safe to print (support/visible_message.h), unless the
  // format has its own escapes (JSON, YAML) or exact_answers is set.
  absl::StatusOr<Client*> client();
  // While set, responses are not changed, because they are compared or sent back; output must go
  // through Visible.
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

  // Returns the stream for the next document of the output. YAML documents are separated by "---".
  std::ostream& NextDocument();

  // Prints an error on standard error, one line for each violation, and returns its exit code.
  // Prints nothing for OK.
  ExitCode Finish(const absl::Status& status);
  // Prints a warning in one line, whatever the text contains.
  void Warn(absl::string_view text);
  bool saw_unsynced() const { return client_ != nullptr && client_->saw_unsynced(); }
  // If a standby answered.
  std::optional<StaleAnswer> stale() const {
    return client_ != nullptr ? client_->stale() : std::nullopt;
  }
  // That answers, or all that were given.
  const std::string& server() const {
    return client_ != nullptr ? client_->server() : options.client.server;
  }

 private:
  CliIo io_;
  bool has_document_ = false;
  std::unique_ptr<Client> client_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_SESSION_H_
