// The user that an image names.
#include "clients/agent/images/image_user.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace berth::testing {
namespace {

class Rootfs {
 public:
  Rootfs() {
    char path[] = "/tmp/image-user-XXXXXX";
    path_ = mkdtemp(path);
    std::filesystem::create_directory(path_ + "/etc");
  }
  ~Rootfs() { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(path_ + "/" + name) << text;
  }
  const std::string& path() const { return path_; }

  // "name uid gid home"
  std::string Find(const std::string& user) const {
    agent::v1::UnpackedImage record;
    SetImageUser(user, path_, &record);
    return record.user() + " " + std::to_string(record.uid()) + " " + std::to_string(record.gid()) +
           " " + record.home();
  }

 private:
  std::string path_;
};

constexpr char kNobody[] = " 0 0 ";

}  // namespace

TEST_CASE("the user of an image, by its own files") {
  Rootfs image;
  image.Write("etc/passwd",
              "root:x:0:0:root:/root:/bin/sh\nbroken\napp:x:1000:1001:App:/srv/app:/bin/sh\n"
              "homeless:x:7:8::relative:\n");
  image.Write("etc/group", "root:x:0:\ndata:x:500:app\n");
  CHECK(image.Find("app") == "app 1000 1001 /srv/app");
  CHECK(image.Find("1000") == "app 1000 1001 /srv/app");
  CHECK(image.Find("app:data") == "app 1000 500 /srv/app");
  CHECK(image.Find("app:42") == "app 1000 42 /srv/app");
  CHECK(image.Find("4711") == "4711 4711 0 /");
  CHECK(image.Find("4711:data") == "4711 4711 500 /");
  CHECK(image.Find("homeless") == "homeless 7 8 /");
  for (const char* none :
       {"", "root", "0", "0:500", "who", "app:nogroup", "-1", "99999999999", ":5"}) {
    INFO(none);
    CHECK(image.Find(none) == kNobody);
  }
}

TEST_CASE("the files of an image's users are looked for in the image") {
  Rootfs image, other;
  other.Write("passwd", "app:x:1:1::/:\n");
  std::filesystem::create_symlink(other.path() + "/passwd", image.path() + "/etc/passwd");
  CHECK(image.Find("app") == kNobody);
  CHECK(image.Find("5") == "5 5 0 /");
  image.Write("etc/real", "app:x:3:4::/:\n");
  std::filesystem::remove(image.path() + "/etc/passwd");
  std::filesystem::create_symlink("/etc/real", image.path() + "/etc/passwd");
  CHECK(image.Find("app") == "app 3 4 /");
}

}  // namespace berth::testing
