// TLS settings and hints without connections; tests/integration/tls_test.py makes real ones.
#include "support/tls.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

using Catch::Matchers::Contains;

const TlsFiles kFiles = {"me.pem", "me.key", "ca.pem"};

TEST_CASE("tls: all files are required, or none") {
  CHECK(MakeChannelCredentials({}).ok());
  CHECK(MakeServerCredentials({}).ok());
  for (const TlsFiles& part : {TlsFiles{"me.pem", "me.key", ""}, TlsFiles{"", "", "ca.pem"}}) {
    const absl::Status refused = MakeChannelCredentials(part).status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK(refused.message() == "tls needs all of certificate, key and ca");
    CHECK(absl::IsInvalidArgument(MakeServerCredentials(part).status()));
    CHECK(absl::IsInvalidArgument(MakeLastingChannelCredentials(part).status()));
  }
}

TEST_CASE("tls: an unusable file is named") {
  CHECK(MakeChannelCredentials({"/no/me.pem", "k", "c"}).status().message() ==
        "cannot read /no/me.pem: No such file or directory");
  CHECK(MakeServerCredentials({"/proc/self/status", "k", "c"}).status().message() ==
        "/proc/self/status is not a PEM file");
}

TEST_CASE("tls: a failed connection is explained if the cause is known") {
  CHECK(ConnectionHint(kFiles, "Peer name 10.0.0.1 is not in peer certificate") ==
        "the server's certificate does not name this host (add it to the subjectAltName)");
  CHECK_THAT(ConnectionHint(kFiles, "Hostname Verification Check failed."),
             Contains("does not name this host"));
  CHECK(ConnectionHint(kFiles, "SSL routines::certificate verify failed") ==
        "the server's certificate is not signed by the authority in ca.pem, or has expired");
  CHECK(ConnectionHint(kFiles, "SSL routines::wrong version number") ==
        "the server does not use TLS");
  const char making[] =
      "failed to connect to all addresses; last error: UNAVAILABLE: Socket closed";
  CHECK_THAT(ConnectionHint(kFiles, making), Contains("not accept me.pem"));
  CHECK_THAT(ConnectionHint({}, making), Contains("may require TLS"));
  // A berthd that dies causes the same errors on established connections.
  for (const char* died : {"Socket closed", "recvmsg:Connection reset by peer"}) {
    CHECK_THAT(ConnectionHint(kFiles, died), Contains("the server or the network closed"));
    CHECK_THAT(ConnectionHint({}, died), !Contains("TLS"));
  }
  CHECK(ConnectionHint(kFiles, "Connection refused").empty());
  CHECK(ConnectionHint({}, "Connection refused").empty());
}

}  // namespace
}  // namespace berth
