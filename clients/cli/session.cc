#include "clients/cli/session.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/auth_socket.h"
#include "clients/cpp/kept_certificate.h"
#include "clients/login/login.h"
#include "support/pki/auth_protocol.h"
#include "support/server_list.h"
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

absl::Status Session::TakeFromSocket(const std::string& socket) {
  const absl::StatusOr<std::string> directory = CertificateDirectory();
  if (!directory.ok()) return directory.status();
  absl::StatusOr<TlsFiles> files = CertificateFrom(socket, *directory, Now());
  if (files.ok()) options.client.tls = *std::move(files);
  return files.status();
}

absl::StatusOr<bool> Session::TakeLogin() {
  const absl::StatusOr<std::string> directory = CertificateDirectory();
  if (!directory.ok()) return false;
  const TlsFiles files = LoginFiles(*directory);
  if (access(files.certificate.c_str(), F_OK) != 0) return false;
  if (absl::Status status = PrepareCertificateDirectory(*directory); !status.ok()) return status;
  const absl::Time end = LookAtCertificate(files).end;
  if (Now() >= end) {
    return absl::FailedPreconditionError(
        "your login has ended; run berth login again, or berth logout");
  }
  options.client.tls = files;
  return true;
}

absl::Status Session::FindCertificate() {
  if (!options.client.tls.empty()) return absl::OkStatus();
  const bool off = options.auth_socket == "off";
  if (!off && !options.auth_socket.empty()) return TakeFromSocket(options.auth_socket);
  // A task's socket, or berthd's own: who may connect is known there.
  if (absl::StartsWith(options.client.server, "unix:")) return absl::OkStatus();
  // berthd on loopback mostly runs without TLS.
  const bool local = AreLoopback(options.client.server);
  if (local && options.auth.empty()) return absl::OkStatus();
  const absl::StatusOr<bool> logged_in = TakeLogin();
  const bool socket = !off && !local && access(kAuthSocket, F_OK) == 0;
  if (logged_in.ok() && *logged_in) return absl::OkStatus();
  if (socket) return TakeFromSocket(kAuthSocket);
  if (logged_in.ok() && !local && !options.auth.empty()) {
    return absl::FailedPreconditionError("you are not logged in; run berth login");
  }
  return logged_in.status();
}

absl::StatusOr<Client*> Session::client() {
  if (client_ == nullptr) {
    if (absl::Status status = FindCertificate(); !status.ok()) return status;
    ClientOptions wanted = options.client;
    const bool escapes = options.format == Format::kJson || options.format == Format::kYaml;
    if (!escapes) {
      wanted.on_answer = [this](google::protobuf::Message* answer) {
        if (!exact_answers) MakeVisible(answer);
      };
    }
    auto opened = Client::Connect(wanted, io_.environment);
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
