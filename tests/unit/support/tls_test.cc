// What is said about TLS without a connection; tests/integration/tls_test.py makes real ones.
#include "support/tls.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

using Catch::Matchers::Contains;

const TlsFiles kFiles = {"me.pem", "me.key", "ca.pem"};

TEST_CASE("tls: all files or none") {
  CHECK(MakeChannelCredentials({}).ok());
  CHECK(MakeServerCredentials({}).ok());
  for (const TlsFiles& part : {TlsFiles{"me.pem", "me.key", ""}, TlsFiles{"", "", "ca.pem"}}) {
    const absl::Status refused = MakeChannelCredentials(part).status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK(refused.message() == "tls needs all of certificate, key and ca");
    CHECK(absl::IsInvalidArgument(MakeServerCredentials(part).status()));
  }
}

TEST_CASE("tls: a file that cannot be used is named") {
  CHECK(MakeChannelCredentials({"/no/me.pem", "k", "c"}).status().message() ==
        "cannot read /no/me.pem: No such file or directory");
  CHECK(MakeServerCredentials({"/proc/self/status", "k", "c"}).status().message() ==
        "/proc/self/status is not a PEM file");
}

TEST_CASE("tls: a failed connection is explained as far as it can be") {
  CHECK(ConnectionHint(kFiles, "Peer name 10.0.0.1 is not in peer certificate") ==
        "the certificate that the server shows does not name this host (its subjectAltName must)");
  CHECK(ConnectionHint(kFiles, "SSL routines::certificate verify failed") ==
        "the certificate that the server shows is not of the authority in ca.pem, or out of date");
  CHECK(ConnectionHint(kFiles, "SSL routines::wrong version number") ==
        "the server does not use TLS");
  const char making[] =
      "failed to connect to all addresses; last error: UNAVAILABLE: Socket closed";
  CHECK_THAT(ConnectionHint(kFiles, making), Contains("not accept me.pem"));
  CHECK_THAT(ConnectionHint({}, making), Contains("may want TLS"));
  // A berthd that dies says the same of connections that were in use.
  for (const char* died : {"Socket closed", "recvmsg:Connection reset by peer"}) {
    CHECK_THAT(ConnectionHint(kFiles, died), Contains("closed by the server"));
    CHECK_THAT(ConnectionHint({}, died), !Contains("TLS"));
  }
  CHECK(ConnectionHint(kFiles, "Connection refused").empty());
  CHECK(ConnectionHint({}, "Connection refused").empty());
}

}  // namespace
}  // namespace berth
