#include "clients/web/web_config.h"

#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/config_file.h"
#include "support/fetch/https_client.h"
#include "support/log.h"
#include "support/pki/certificate.h"
#include "support/server_list.h"
#include "support/tls.h"

namespace berth::web {
namespace {

using Problems = std::vector<std::string>;

void Check(bool ok, absl::string_view field, absl::string_view problem, Problems* problems) {
  if (!ok) problems->push_back(absl::StrCat(field, ": ", problem));
}

bool IsOrigin(absl::string_view url) {
  const bool scheme = absl::StartsWith(url, "https://") || absl::StartsWith(url, "http://");
  const absl::string_view host = scheme ? url.substr(url.find("://") + 3) : "";
  return !host.empty() && url.size() <= kMaxUrlBytes &&
         host.find_first_of("/?#@ ABCDEFGHIJKLMNOPQRSTUVWXYZ") == absl::string_view::npos;
}

void CheckFiles(const v1::Web& config, Problems* problems) {
  const v1::WebCertificates& certificates = config.certificates();
  const bool wanted = config.has_certificates();
  for (const auto& [field, path, required] :
       {std::tuple{"certificate", &config.certificate(), !config.key().empty()},
        {"key", &config.key(), !config.certificate().empty()},
        {"ca", &config.ca(), false},
        {"authd.ca_file", &config.authd().ca_file(), false},
        {"certificates.ca", &certificates.ca(), wanted},
        {"certificates.authority", &certificates.authority(), wanted},
        {"certificates.authority_key", &certificates.authority_key(), wanted}}) {
    Check(!required || !path->empty(), field, "required: a PEM file", problems);
    Check(CheckAbsolutePath(*path).ok(), field, "must be an absolute path", problems);
  }
}

void CheckAddresses(const v1::Web& config, Problems* problems) {
  const absl::Status listen = CheckServerAddress(config.listen());
  Check(listen.ok() && !absl::StartsWith(config.listen(), "unix:"), "listen",
        "must be ADDRESS:PORT, such as 127.0.0.1:7072", problems);
  const bool loopback = IsLoopbackAddress(config.listen());
  Check(loopback || !config.certificate().empty(), "certificate",
        "required, as `listen` is not loopback", problems);
  Check(loopback || HasSignIn(config), "ca",
        "required, as `listen` is not loopback: without sign-in everybody who reaches the page "
        "would be the user that berthd's configuration names",
        problems);
  Check(loopback || !config.url().empty(), "url", "required, as `listen` is not loopback",
        problems);
  Check(config.url().empty() || IsOrigin(config.url()), "url",
        "must be like https://berth.example, in lower case and without a path", problems);
  for (const std::string& server : ServersOf(config.server())) {
    Check(HasSignIn(config) || IsLoopbackAddress(server), "server",
          "must be on this machine without `ca`", problems);
  }
  Check(CheckServerList(config.server()).ok(), "server",
        "must be HOST:PORT, or several with commas", problems);
}

void CheckSignIn(const v1::Web& config, Problems* problems) {
  const bool some = config.has_authd() || config.has_certificates();
  if (!HasSignIn(config)) {
    Check(!some && config.url().empty(), "ca", "required for url, authd and certificates",
          problems);
    return;
  }
  Check(some, "authd", "people need authd or certificates to sign in", problems);
  Check(!config.has_authd() || IsHttpsUrl(config.authd().url()), "authd.url",
        "must be like https://login.example:7080", problems);
  Check(!config.has_certificates() || !config.certificate().empty(), "certificate",
        "required for sign-in with client certificates, which TLS asks for", problems);
  const std::string domain = config.certificates().trust_domain();
  Check(!config.has_certificates() ||
            ParseSpiffeId(absl::StrCat("spiffe://", domain, "/user/a")).ok(),
        "certificates.trust_domain", "must be lower-case letters, digits, '.', '-' and '_'",
        problems);
}

}  // namespace

absl::Status CompleteWebConfig(v1::Web* config) {
  if (config->listen().empty()) config->set_listen(kDefaultWebListen);
  if (config->server().empty()) config->set_server("127.0.0.1:7070");
  if (config->has_certificates() && config->certificates().trust_domain().empty()) {
    config->mutable_certificates()->set_trust_domain("berth");
  }
  Problems problems;
  CheckFiles(*config, &problems);
  CheckAddresses(*config, &problems);
  CheckSignIn(*config, &problems);
  Check(config->log().level().empty() || IsLogLevel(config->log().level()), "log.level",
        "must be trace, debug, info, warn or error", &problems);
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

std::vector<std::string> OriginsOf(const v1::Web& config) {
  if (!config.url().empty()) return {config.url()};
  const std::string scheme = config.certificate().empty() ? "http://" : "https://";
  const std::string port = config.listen().substr(config.listen().rfind(':'));
  return {absl::StrCat(scheme, "127.0.0.1", port), absl::StrCat(scheme, "localhost", port),
          absl::StrCat(scheme, "[::1]", port)};
}

}  // namespace berth::web
