#include "clients/cli/session.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/auth_socket.h"
#include "support/standby.h"
#include "support/visible.h"
#include "support/visible_message.h"

namespace berth {

bool Session::colors() const {
  if (options.color != ColorMode::kAuto) return options.color == ColorMode::kAlways;
  return io_.out_is_terminal && !io_.no_color;
}

TableStyle Session::table_style() const {
  return {options.format == Format::kWide, !options.no_headers, colors(), io_.width};
}

absl::StatusOr<Client*> Session::client() {
  if (client_ == nullptr) {
    ConnectionOptions wanted = options;
    const bool escapes = options.format == Format::kJson || options.format == Format::kYaml;
    if (!escapes) {
      wanted.client.on_answer = [this](google::protobuf::Message* answer) {
        if (!exact_answers) MakeVisible(answer);
      };
    }
    auto opened = OpenClient(&wanted, io_.environment);
    options.client.tls = wanted.client.tls;
    if (!opened.ok()) return opened.status();
    client_ = *std::move(opened);
  }
  return client_.get();
}

std::ostream& Session::NextDocument() {
  if (options.format == Format::kYaml && std::exchange(has_document_, true)) out() << "---\n";
  return out();
}

ExitCode Session::Finish(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  const std::vector<Violation> violations = ViolationsOf(status);
  for (const Violation& violation : violations) {
    err() << "berth: " << Visible(violation.field) << (violation.field.empty() ? "" : ": ")
          << Visible(violation.description) << "\n";
  }
  if (violations.empty()) err() << "berth: " << Visible(status.message()) << "\n";
  const bool of_server = !absl::StartsWith(status.message(), kAuthdErrors);
  const bool of_standby = absl::StartsWith(status.message(), kStandbyMessage);
  if (absl::IsUnavailable(status) && of_server && !of_standby) {
    const std::string hint = ConnectionHint(options.client.tls, status.message());
    const std::string& server = options.client.server;
    err() << "berth: " << (hint.empty() ? absl::StrCat("is berthd running at ", server, "?") : hint)
          << "\n";
  }
  return ExitCodeOf(status);
}

void Session::Warn(absl::string_view text) { err() << "berth: warning: " << Visible(text) << "\n"; }

}  // namespace berth
