// What names mean in an image cache, without a registry.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "clients/agent/images/image_cache.h"
#include "tests/unit/images/image_world.h"

namespace berth {
namespace {

using agent::v1::PULL_ALWAYS;
using agent::v1::PULL_IF_NOT_PRESENT;
using agent::v1::PULL_NEVER;

const std::string kOld = "sha256:" + std::string(64, 'a');
const std::string kNew = "sha256:" + std::string(64, 'b');
const std::string kKey = std::string(64, '1');
const std::string kOldKey = std::string(64, '2');

// The tag means kNew here, and kOld is there, too.
struct World {
  World() {
    request.set_cache(files.path() + "/cache");
    for (const char* name : {"", "/refs", "/used", "/pulled", "/sha256-old", "/sha256-new"})
      mkdir((request.cache() + name).c_str(), 0700);
    agent::v1::UnpackedImage record;
    record.set_bytes(1000);
    for (const char* name : {"old", "new"}) {
      std::ofstream(request.cache() + "/sha256-" + name + "/image") << record.SerializeAsString();
    }
    Ref(kKey, "sha256-new\n" + kNew + "\nr.example/x:1\n");
    Ref(kOldKey, "sha256-old\n" + kOld + "\nr.example/x:1\n");
    request.set_link("task");
    agent::v1::Pull& pull = *request.mutable_pull();
    pull.set_key(kKey);
    pull.set_policy(PULL_IF_NOT_PRESENT);
    pull.set_skopeo("/nowhere/skopeo");
    pull.add_sources()->set_host("r.example");
  }
  void Ref(const std::string& name, const std::string& text) {
    std::ofstream(request.cache() + "/refs/" + name) << text;
  }
  // The image that the task got, or why it got none.
  std::string Provide() {
    ImageCache cache(request, [] { return true; });
    const absl::Status status = cache.Provide();
    if (!status.ok()) return std::string(status.message());
    const std::string link = request.cache() + "/used/task";
    std::error_code none;
    return std::filesystem::read_symlink(link, none).filename().string() + " " + cache.digest();
  }
  testing::TemporaryDirectory files;
  agent::v1::ImageRequest request;
};

TEST_CASE("refs: a name that is known needs no registry, unless it is always asked") {
  World w;
  CHECK(w.Provide() == "sha256-new " + kNew);
  w.request.mutable_pull()->set_policy(PULL_ALWAYS);
  CHECK(w.Provide().find("/nowhere/skopeo (images.skopeo) does not exist") == 0);
}

TEST_CASE("refs: the digest that is wanted counts, whatever the tag means, also if it is asked") {
  World w;
  w.request.mutable_pull()->set_policy(GENERATE(PULL_ALWAYS, PULL_IF_NOT_PRESENT, PULL_NEVER));
  w.request.mutable_pull()->set_wanted_digest(kOld);
  w.request.mutable_pull()->set_wanted_key(kOldKey);
  CHECK(w.Provide() == "sha256-old " + kOld);
  w.request.mutable_pull()->set_wanted_digest(kNew);
  w.request.mutable_pull()->set_wanted_key(std::string(64, '3'));
  CHECK(w.Provide() == "sha256-new " + kNew);
}

TEST_CASE("refs: a digest that is wanted and not there is pulled, or the job's fault with Never") {
  World w;
  w.request.mutable_pull()->set_wanted_digest("sha256:" + std::string(64, 'c'));
  w.request.mutable_pull()->set_wanted_key(std::string(64, '3'));
  CHECK(w.Provide().find("/nowhere/skopeo (images.skopeo) does not exist") == 0);
  w.request.mutable_pull()->set_policy(PULL_NEVER);
  CHECK(w.Provide() == "other tasks of the job have sha256:" + std::string(64, 'c') +
                           ", the node does not, and imagePullPolicy is Never");
}

TEST_CASE("refs: older versions wrote only the entry") {
  World w;
  w.Ref(kKey, "sha256-new");
  CHECK(w.Provide() == "sha256-new ");
}

TEST_CASE("refs: in advance, nothing keeps the image") {
  World w;
  w.request.clear_link();
  w.request.set_background(true);
  CHECK(w.Provide() == " " + kNew);
  CHECK(std::filesystem::is_empty(w.request.cache() + "/used"));
}

TEST_CASE("refs: the images of a node, the latest used first, each name and digest once") {
  World w;
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  utimensat(AT_FDCWD, (w.request.cache() + "/sha256-new").c_str(), times, 0);
  w.Ref(std::string(64, '4'), "sha256-new\n" + kNew + "\nr.example/x:1\n");  // other credentials
  w.Ref("sha256-" + std::string(64, 'b'), "sha256-new\n\n\n");
  w.Ref(std::string(64, '5'), "sha256-gone\n" + kNew + "\nr.example/y:1\n");
  w.Ref(std::string(64, '6'), "../../etc\n" + kNew + "\nr.example/z:1\n");
  CHECK(ListImages(w.request.cache()) ==
        std::vector<CachedImage>{{.image = "r.example/x:1", .digest = kOld, .bytes = 1000},
                                 {.image = "r.example/x:1", .digest = kNew, .bytes = 1000}});
  CHECK(ListImages("/nowhere").empty());
}

}  // namespace
}  // namespace berth
