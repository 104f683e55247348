// login and logout.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/command.h"
#include "clients/login/device_flow.h"
#include "clients/login/login.h"
#include "support/nearest.h"
#include "support/pki/auth_protocol.h"
#include "support/visible.h"

namespace berth {
namespace {

struct LoginOptions {
  std::string ca_file;
  std::string issuer;
  std::string token_file;
  std::string token;  // of the environment
};

// Hints of Session::Finish are about berthd.
ExitCode FinishLogin(Session& session, const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return session.Finish(status);
  session.err() << "berth: " << Visible(status.message()) << "\n";
  return ExitCode::kUnavailable;
}

absl::StatusOr<std::string> TokenIn(std::istream& in, const std::string& name) {
  std::string text(kMaxTokenBytes + 2, '\0');  // and a line end
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  std::string token(absl::StripAsciiWhitespace(text));
  if (token.empty()) return absl::InvalidArgumentError(absl::StrCat(name, " contains no token"));
  if (token.size() <= kMaxTokenBytes) return token;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has more than ", kMaxTokenBytes, " bytes, which no token has"));
}

// "": none was given.
absl::StatusOr<std::string> GivenToken(Session& session, const LoginOptions& options) {
  if (options.token_file == "-") {
    if (session.io().in == nullptr) return absl::InvalidArgumentError("there is no standard input");
    return TokenIn(*session.io().in, "standard input");
  }
  if (!options.token_file.empty()) {
    std::ifstream file(options.token_file, std::ios::binary);
    if (!file) return absl::InvalidArgumentError(absl::StrCat("cannot read ", options.token_file));
    return TokenIn(file, options.token_file);
  }
  return std::string(absl::StripAsciiWhitespace(options.token));
}

absl::StatusOr<auth::v1::LoginOffer::Issuer> ChosenIssuer(const auth::v1::LoginOffer& offer,
                                                          const std::string& wanted) {
  std::vector<std::string> known;
  for (const auto& issuer : offer.issuers()) {
    if (issuer.issuer() == wanted) return issuer;
    known.push_back(issuer.issuer());
  }
  if (!wanted.empty()) {
    return absl::InvalidArgumentError(UnknownWord("--issuer: unknown issuer", wanted, known));
  }
  if (known.size() == 1) return offer.issuers(0);
  if (known.empty()) {
    return absl::FailedPreconditionError(
        "berth-authd takes only tokens that were made elsewhere; use --token-file");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("choose where to log in with --issuer: ", absl::StrJoin(known, ", ")));
}

void ShowPrompt(Session& session, const DevicePrompt& prompt) {
  session.out() << "Open " << Visible(prompt.page) << " in a browser, and enter the code "
                << Visible(prompt.code) << "\n";
  if (!prompt.complete_page.empty()) {
    session.out() << "or open " << Visible(prompt.complete_page) << " and check the code.\n";
  }
  session.out() << "Waiting until " << absl::FormatTime("%H:%M", prompt.end, session.io().time_zone)
                << " ..." << std::endl;
}

absl::StatusOr<std::string> TokenOf(Session& session, const AuthdServer& server,
                                    const LoginOptions& options) {
  absl::StatusOr<std::string> given = GivenToken(session, options);
  if (!given.ok() || !given->empty()) return given;
  const absl::StatusOr<auth::v1::LoginOffer> offer = GetLoginOffer(server, &AskHttps);
  if (!offer.ok()) return offer.status();
  const auto issuer = ChosenIssuer(*offer, options.issuer);
  if (!issuer.ok()) return issuer.status();
  return TokenByDeviceFlow(*issuer, &AskHttps, session.io().environment,
                           [&](const DevicePrompt& prompt) { ShowPrompt(session, prompt); });
}

absl::StatusOr<TlsFiles> PreparedLoginFiles() {
  const absl::StatusOr<std::string> directory = CertificateDirectory();
  if (!directory.ok()) return directory.status();
  if (absl::Status status = PrepareCertificateDirectory(*directory); !status.ok()) return status;
  return LoginFiles(*directory);
}

ExitCode LogIn(Session& session, const LoginOptions& options) {
  if (session.options.auth.empty()) {
    return session.Finish(absl::InvalidArgumentError(
        "where? --auth or BERTH_AUTH names berth-authd, such as https://login.example:7080"));
  }
  const AuthdServer server{.url = session.options.auth, .ca_file = options.ca_file};
  const absl::StatusOr<TlsFiles> files = PreparedLoginFiles();  // before a person takes pains
  if (!files.ok()) return FinishLogin(session, files.status());
  const absl::StatusOr<std::string> token = TokenOf(session, server, options);
  if (!token.ok()) return FinishLogin(session, token.status());
  const absl::StatusOr<NewLogin> login = ExchangeToken(
      server, *token, *files, session.options.client.timeout, &AskHttps, session.io().environment);
  if (!login.ok()) return FinishLogin(session, login.status());
  session.out() << "Logged in as " << Visible(login->user) << " until "
                << absl::FormatTime("%Y-%m-%d %H:%M", login->end, session.io().time_zone);
  if (!login->groups.empty()) {
    session.out() << ", in the groups " << Visible(absl::StrJoin(login->groups, ", "));
  }
  session.out() << "\n";
  return ExitCode::kOk;
}

ExitCode LogOut(Session& session) {
  const absl::StatusOr<TlsFiles> files = PreparedLoginFiles();
  if (!files.ok()) return FinishLogin(session, files.status());
  const absl::StatusOr<bool> forgotten = ForgetCertificate(*files);
  if (!forgotten.ok()) return FinishLogin(session, forgotten.status());
  session.out() << (*forgotten ? "Logged out.\n" : "You were not logged in.\n");
  return ExitCode::kOk;
}

}  // namespace

void AddLoginCommands(CLI::App& app, Session& session) {
  auto options = std::make_shared<LoginOptions>();
  CLI::App* login = AddCommand(
      app, session, "login",
      "get a certificate by a login in the browser, or for a token; later commands use it",
      [options](Session& s) {
        const char* token = std::getenv("BERTH_ID_TOKEN");
        options->token = token == nullptr ? "" : token;
        return LogIn(s, *options);
      });
  login
      ->add_option("--auth-ca", options->ca_file,
                   "PEM file: CA certificates to verify berth-authd with; default: the system's")
      ->envname("BERTH_AUTH_CA");
  login->add_option("--issuer", options->issuer,
                    "where to log in, if berth-authd trusts several issuers");
  login->add_option("--token-file", options->token_file,
                    "file with an ID token, or - for standard input, instead of a login in the "
                    "browser; environment: BERTH_ID_TOKEN contains the token itself");
  AddCommand(app, session, "logout", "remove the certificate of berth login",
             [](Session& s) { return LogOut(s); });
}

}  // namespace berth
