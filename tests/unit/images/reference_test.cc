#include "clients/agent/images/reference.h"

#include <catch2/catch.hpp>
#include <string>

#include "clients/agent/images/skopeo.h"

namespace berth {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string Parsed(const std::string& name, const std::string& default_host = "docker.io") {
  const auto reference = ParseImageReference(name, default_host);
  return reference.ok() ? TextOf(*reference) : std::string(reference.status().message());
}

}  // namespace

TEST_CASE("names of images in registries") {
  CHECK(Parsed("r.example:5000/team/torch:2.3") == "r.example:5000/team/torch:2.3");
  CHECK(Parsed("r.example/torch") == "r.example/torch:latest");
  CHECK(Parsed("localhost/torch:1") == "localhost/torch:1");
  CHECK(Parsed("r.example/torch@" + kDigest) == "r.example/torch@" + kDigest);
  CHECK(Parsed("r.example/torch:2.3@" + kDigest) == "r.example/torch@" + kDigest);
  // Without a host.
  CHECK(Parsed("team/torch:2.3") == "docker.io/team/torch:2.3");
  CHECK(Parsed("alpine") == "docker.io/library/alpine:latest");
  CHECK(Parsed("alpine", "r.example") == "r.example/alpine:latest");
  CHECK(absl::IsNotFound(ParseImageReference("alpine", "").status()));
  for (const std::string bad :
       {"", "r.example/", "r.example/UPPER", "r.example/a//b", "r.example/a:", "r.example/a:.x",
        "r.example/a@sha256:12", "r.example/a@md5:12", "r.example:port/a", "r.example:/a",
        "r.example/-a", "-r.example/a", "r.example/a b"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseImageReference(bad, "docker.io").status()));
  }
  CHECK(absl::IsInvalidArgument(
      ParseImageReference("r.example/a:" + std::string(129, 'x'), "").status()));
}

TEST_CASE("what skopeo says of a registry") {
  const auto error = [](const std::string& text) {
    return SkopeoError("r.example", "time=\"now\" level=fatal msg=\"" + text + "\"");
  };
  const std::string head = "Error parsing image name \\\"docker://r.example/x:1\\\": ";
  CHECK(error(head + "reading manifest 1: unauthorized: authentication required") ==
        absl::UnauthenticatedError("registry r.example does not accept the credentials: reading "
                                   "manifest 1: unauthorized: authentication required"));
  CHECK(absl::IsNotFound(error(head + "reading manifest 1: manifest unknown")));
  CHECK(absl::IsAborted(error("Digest did not match, expected sha256:1, got sha256:2")));
  CHECK(absl::IsResourceExhausted(error("write /x: no space left on device")));
  CHECK(error("dial tcp 10.0.0.1:443: connect: connection refused") ==
        absl::UnavailableError(
            "registry r.example: dial tcp 10.0.0.1:443: connect: connection refused"));
  CHECK(absl::IsUnavailable(SkopeoError("r.example", "")));
}

}  // namespace berth
