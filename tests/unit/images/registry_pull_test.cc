// With a script in place of skopeo; tests/integration/registry_image_test.py has a real registry.
#include "clients/agent/images/registry_pull.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/agent/images/blob.h"
#include "clients/agent/images/oci_layout.h"
#include "tests/unit/images/image_world.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

const std::string kGoodDigest = "sha256:" + std::string(64, 'a');

std::string Manifest(const std::string& digest, const std::string& size) {
  return absl::StrCat(R"({"schemaVersion":2,"config":{"digest":")", kGoodDigest,
                      R"(","size":2},"layers":[{"digest":")", digest, R"(","size":)", size, "}]}");
}

class World {
 public:
  World() {
    request.set_cache(files.path() + "/cache");
    fs::create_directory(request.cache());
    request.set_max_image_bytes(int64_t{1} << 30);
    agent::v1::Pull& pull = *request.mutable_pull();
    pull.set_path("team/x");
    pull.set_tag("1");
    pull.set_key(std::string(64, 'b'));
    pull.set_timeout_ms(60'000);
    pull.set_stall_ms(60'000);
    pull.add_sources()->set_host("mirror.example");
    pull.add_sources()->set_host("r.example");
  }
  // What the source answers to `skopeo inspect`; the shell sees all arguments.
  void Skopeo(const std::string& script) {
    const std::string path = files.path() + "/skopeo";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    chmod(path.c_str(), 0755);
    request.mutable_pull()->set_skopeo(path);
  }
  void Answer(const std::string& name, const std::string& text) {
    std::ofstream(files.path() + "/" + name) << text;
  }
  std::string At(const std::string& name) const { return files.path() + "/" + name; }

  testing::TemporaryDirectory files;
  agent::v1::ImageRequest request;
  RegistryPull::Hooks hooks = {.check_free = [] { return absl::OkStatus(); },
                               .progress = [](int64_t, int64_t) {}};
};

}  // namespace

TEST_CASE("registry: a manifest is resolved at the first source that has it") {
  World w;
  const std::string manifest = Manifest(kGoodDigest, "5");
  w.Answer("manifest", manifest);
  w.Skopeo(
      absl::StrCat("case \"$*\" in *mirror.example*) echo 'msg=\"connection refused\"' >&2; "
                   "exit 1;; esac\ncat ",
                   w.At("manifest")));
  RegistryPull pull(w.request, w.hooks);
  REQUIRE(pull.Resolve().ok());
  CHECK(pull.digest() == "sha256:" + Sha256Hex(manifest));
}

TEST_CASE("registry: the error of the last source is told") {
  World w;
  w.Skopeo("echo \"msg=\\\"manifest unknown\\\"\" >&2; exit 1");
  const absl::Status status = RegistryPull(w.request, w.hooks).Resolve();
  CHECK(status == absl::NotFoundError("registry r.example has no such image: manifest unknown"));
}

TEST_CASE("registry: of an index, the manifest for this machine, by its digest") {
  World w;
  const std::string manifest = Manifest(kGoodDigest, "5");
  const std::string digest = "sha256:" + Sha256Hex(manifest);
  w.Answer("manifest", manifest);
  w.Answer("index", absl::StrCat(R"({"manifests":[{"digest":")", kGoodDigest,
                                 R"(","platform":{"os":"linux","architecture":"odd"}},{"digest":")",
                                 digest, R"(","platform":{"os":"linux","architecture":")",
                                 HostArchitecture(), R"("}}]})"));
  w.Skopeo(absl::StrCat("case \"$*\" in *@", digest, "*) cat ", w.At("manifest"), ";; *) cat ",
                        w.At("index"), ";; esac"));
  RegistryPull pull(w.request, w.hooks);
  REQUIRE(pull.Resolve().ok());
  CHECK(pull.digest() == digest);
  // Something else under that digest.
  w.Answer("manifest", manifest + " ");
  CHECK(absl::IsAborted(RegistryPull(w.request, w.hooks).Resolve()));
}

TEST_CASE("registry: hostile manifests are refused") {
  World w;
  const std::string outside = w.At("outside");
  std::ofstream(outside) << "x";
  for (const std::string& bad :
       {Manifest("sha256:../../../../outside", "1"), Manifest("../outside", "1"),
        Manifest(kGoodDigest, "-1"), Manifest(kGoodDigest, "9223372036854775807"),
        std::string("{}"), std::string("no JSON"), std::string(R"({"manifests":[{}]})")}) {
    INFO(bad);
    w.Answer("manifest", bad);
    w.Skopeo("cat " + w.At("manifest"));
    RegistryPull pull(w.request, w.hooks);
    CHECK_FALSE(pull.Resolve().ok());
    pull.RemoveBlobs();
    CHECK(fs::exists(outside));
  }
}

TEST_CASE("registry: a pull that takes too long, or gets nothing, is given up") {
  World w;
  w.Skopeo("sleep 60");
  w.request.mutable_pull()->set_stall_ms(300);
  CHECK(absl::IsUnavailable(RegistryPull(w.request, w.hooks).Resolve()));
  w.request.mutable_pull()->set_stall_ms(60'000);
  w.request.mutable_pull()->set_timeout_ms(300);
  CHECK(absl::IsDeadlineExceeded(RegistryPull(w.request, w.hooks).Resolve()));
  w.hooks.check_free = [] { return absl::ResourceExhaustedError("full"); };
  CHECK(RegistryPull(w.request, w.hooks).Resolve() == absl::ResourceExhaustedError("full"));
}

TEST_CASE("registry: an image that is too large is not pulled") {
  World w;
  w.Answer("manifest", Manifest(kGoodDigest, absl::StrCat(int64_t{2} << 30)));
  w.Skopeo("cat " + w.At("manifest"));
  RegistryPull pull(w.request, w.hooks);
  REQUIRE(pull.Resolve().ok());
  CHECK(absl::IsOutOfRange(pull.Copy()));
}

TEST_CASE("registry: without skopeo the node is at fault") {
  World w;
  w.request.mutable_pull()->set_skopeo("/nowhere/skopeo");
  CHECK(RegistryPull(w.request, w.hooks).Resolve() ==
        absl::InternalError(
            "/nowhere/skopeo (images.skopeo) does not exist: apt-get install skopeo"));
}

}  // namespace berth
