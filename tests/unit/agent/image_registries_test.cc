#include "clients/agent/image_registries.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace berth {
namespace {

using Problems = std::vector<std::string>;

v1::TaskLaunch LaunchOf(const std::string& image, const std::string& queue) {
  v1::TaskLaunch launch;
  launch.set_image(image);
  launch.set_queue(queue);
  return launch;
}

}  // namespace

TEST_CASE("registries: what is wrong with the configuration") {
  config::v1::Images images;
  config::v1::Registry& one = *images.add_registries();
  one.set_host("r.example:5000");
  images.set_default_registry("r.example:5000");
  CHECK(RegistryProblems(images).empty());
  images.set_default_registry("docker.io");
  CHECK(RegistryProblems(images) ==
        Problems{"images.defaultRegistry: docker.io is not in images.registries"});
  one.set_host("*");
  CHECK(RegistryProblems(images).empty());
  one.set_host("https://r.example");
  one.add_mirrors("mirror");
  one.set_credentials("auth.json");
  one.set_http(true);
  one.set_ca("/ca.pem");
  images.clear_default_registry();
  CHECK(RegistryProblems(images) ==
        Problems{"images.registries[0].host: \"https://r.example\" is no HOST or HOST:PORT",
                 "images.registries[0].mirrors: \"mirror\" is no HOST or HOST:PORT",
                 "images.registries[0].credentials: must be an absolute path, is auth.json",
                 "images.registries[0].ca: has no meaning with http"});
}

TEST_CASE("registries: the first entry for the host and the job's queue, mirrors first") {
  config::v1::Images images;
  config::v1::Registry& research = *images.add_registries();
  research.set_host("r.example");
  research.add_queues("research");
  research.set_credentials("/research.json");
  config::v1::Registry& all = *images.add_registries();
  all.set_host("r.example");
  all.add_mirrors("mirror.example");
  config::v1::Registry& mirror = *images.add_registries();
  mirror.set_host("mirror.example");
  mirror.set_http(true);
  const auto pull_of = [&](const std::string& image, const std::string& queue) {
    return PullOf(images, LaunchOf(image, queue), TaskUser{}, "/nowhere");
  };
  const auto own = pull_of("r.example/x:1", "research");
  REQUIRE(own.ok());
  REQUIRE(own->sources_size() == 1);
  CHECK(own->sources(0).credentials() == "/research.json");
  CHECK(own->policy() == agent::v1::PULL_IF_NOT_PRESENT);
  const auto other = pull_of("r.example/x", "q");
  REQUIRE(other.ok());
  REQUIRE(other->sources_size() == 2);
  CHECK(other->sources(0).host() == "mirror.example");
  CHECK(other->sources(0).http());
  CHECK(other->sources(1).credentials().empty());
  CHECK(other->policy() == agent::v1::PULL_ALWAYS);  // "latest"
  CHECK(own->key() != other->key());
  CHECK(pull_of("r.example/x:1", "q")->key() != own->key());  // other credentials
  CHECK(absl::IsNotFound(pull_of("elsewhere.example/x", "q").status()));
  CHECK(absl::IsNotFound(pull_of("x", "q").status()));
  CHECK(absl::IsInvalidArgument(pull_of("r.example/X", "q").status()));
}

}  // namespace berth
