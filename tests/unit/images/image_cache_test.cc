// What berth-image leaves in its cache: run by the real program, with umoci, or with scripts if
// umoci must be slow, greedy or counted.
#include "clients/agent/images/image_cache.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "clients/agent/images/file_tree.h"
#include "tests/unit/images/image_world.h"
#include "tests/unit/images/layout_builder.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT
namespace fs = std::filesystem;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) absl::SleepFor(absl::Milliseconds(10));
  return condition();
}

struct World {
  World() : layout(files.path() + "/store") {
    request.set_cache(files.path() + "/cache");
    request.set_layout(layout.path());
    request.set_link("n1-1-0-1");
    request.set_umoci("/usr/bin/umoci");
    request.set_cache_bytes(int64_t{1} << 30);
    request.set_max_image_bytes(int64_t{1} << 28);
    request.set_max_image_files(1000);
    request.set_timeout_ms(60'000);
  }
  std::string Entry() const {
    return absl::StrCat(request.cache(), "/sha256-", layout.manifest_digest.substr(7));
  }
  // The contents of the cache without its locks and links.
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(request.cache())) {
      const std::string name = entry.path().filename();
      if (name.rfind("sha256-", 0) == 0 || name == "new" || name == "old") names.insert(name);
    }
    return names;
  }
  // Replaces umoci. The script must make rootfs in its working directory.
  void Script(const std::string& text) {
    const std::string path = files.path() + "/unpacker";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    chmod(path.c_str(), 0755);
    request.set_umoci(path);
  }
  void UseImage(const std::string& config = "{}") {
    layout.WriteIndex({layout.AddImage({{{.name = "f", .content = "x"}}}, config)});
  }

  TemporaryDirectory files;
  LayoutBuilder layout;
  agent::v1::ImageRequest request;
};

bool HasUmoci() {
  if (geteuid() == 0 && access("/usr/bin/umoci", X_OK) == 0) return true;
  WARN("no root or no umoci: unpacking is not tested");
  return false;
}

TEST_CASE("an image is unpacked once, with its configuration, and kept by a link") {
  if (!HasUmoci()) return;
  World w;
  const std::string image = w.layout.AddImage(
      {{{.name = "bin/", .type = '5'}, {.name = "bin/a", .content = "old"}, {.name = "gone"}},
       {{.name = "bin/a", .content = "new"}, {.name = ".wh.gone"}}},
      R"({"Env":["PATH=/opt/bin","A=b=c","=x","none"],"WorkingDir":"bin","User":"7"})",
      w.layout.Tag("1"));
  w.layout.WriteIndex({image});
  CHECK(RunImageProgram(w.request) == "");
  CHECK(ReadText(w.Entry() + "/rootfs/bin/a") == "new");
  CHECK_FALSE(fs::exists(w.Entry() + "/rootfs/gone"));
  CHECK_FALSE(fs::exists(w.Entry() + "/layout"));
  CHECK(fs::equivalent(w.request.cache() + "/used/n1-1-0-1", w.Entry()));
  CHECK((fs::status(w.request.cache()).permissions() & fs::perms::all) == fs::perms::owner_all);
  agent::v1::UnpackedImage record;
  REQUIRE(record.ParseFromString(ReadText(w.Entry() + "/image")));
  REQUIRE(record.env_size() == 2);
  CHECK(record.env(0) == "PATH=/opt/bin");
  CHECK(record.env(1) == "A=b=c");
  CHECK(record.working_directory() == "/bin");
  CHECK(record.bytes() > 0);
  // Again, for another task: unpacks nothing.
  w.Script("exit 1");
  w.request.set_link("n1-2-0-1");
  w.request.set_tag("1");
  CHECK(RunImageProgram(w.request) == "");
  CHECK(fs::equivalent(w.request.cache() + "/used/n1-2-0-1", w.Entry()));
}

TEST_CASE("hostile layers reach nothing outside of the image") {
  if (!HasUmoci()) return;
  World w;
  const std::string outside = w.files.path() + "/outside";
  fs::create_directory(outside);
  std::ofstream(outside + "/victim") << "whole";
  const std::vector<TarEntry> hostile[] = {
      {{.name = "../../../outside/new", .content = "x"}},
      {{.name = outside + "/new", .content = "x"}},
      {{.name = "way", .type = '2', .link = outside}, {.name = "way/new", .content = "x"}},
      {{.name = "up", .type = '2', .link = "../../../outside"},
       {.name = "up/victim", .content = "x"}},
      {{.name = "v", .type = '2', .link = outside + "/victim"}, {.name = "v", .content = "x"}},
      {{.name = "hard", .type = '1', .link = outside + "/victim"},
       {.name = "hard", .content = "x"}},
      {{.name = "way", .type = '2', .link = outside}, {.name = "way/.wh.victim"}},
      {{.name = "way", .type = '2', .link = outside}, {.name = "way/.wh..wh..opq"}},
  };
  for (const std::vector<TarEntry>& layer : hostile) {
    w.layout.WriteIndex({w.layout.AddImage({layer})});
    INFO(layer[0].name << " " << RunImageProgram(w.request));
    CHECK(ReadText(outside + "/victim") == "whole");
    CHECK_FALSE(fs::exists(outside + "/new"));
    CHECK(fs::hard_link_count(outside + "/victim") == 1);
    w.layout.WriteIndex({w.layout.AddImage({{layer[0]}, {layer.back()}})});  // two layers
    RunImageProgram(w.request);
    CHECK(ReadText(outside + "/victim") == "whole");
    CHECK_FALSE(fs::exists(outside + "/new"));
  }
}

TEST_CASE("a working directory that is a link never leads out of the image") {
  if (!HasUmoci()) return;
  World w;
  const auto directory = [&](const std::string& target) {
    w.layout.WriteIndex({w.layout.AddImage(
        {{{.name = "etc/", .type = '5'}, {.name = "w", .type = '2', .link = target}}},
        R"({"WorkingDir":"/w"})")});
    CHECK(RunImageProgram(w.request) == "");
    agent::v1::UnpackedImage record;
    CHECK(record.ParseFromString(ReadText(w.Entry() + "/image")));
    return record.working_directory();
  };
  CHECK(directory("/etc") == "/w");
  CHECK(directory("/usr") == "");  // on the machine, not in the image
}

TEST_CASE("device files of an image are omitted") {
  if (!HasUmoci()) return;
  World w;
  w.layout.WriteIndex({w.layout.AddImage(
      {{{.name = "dev/", .type = '5'}, {.name = "dev/mem", .type = '3', .mode = 0666}}})});
  CHECK(RunImageProgram(w.request) == "");
  CHECK(fs::exists(w.Entry() + "/rootfs/dev"));
  CHECK_FALSE(fs::exists(w.Entry() + "/rootfs/dev/mem"));
}

TEST_CASE("a damaged layer is refused by name, and nothing remains of it") {
  if (!HasUmoci()) return;
  World w;
  w.UseImage();
  const std::string layer = w.layout.layer_digests[0];
  std::fstream(w.layout.BlobFile(layer), std::ios::in | std::ios::out) << "z";
  const std::string words = RunImageProgram(w.request);
  CHECK(absl::StrContains(words, "blob " + layer));
  CHECK(absl::StrContains(words, "is damaged"));
  CHECK(w.Names().empty());
  CHECK(fs::is_empty(w.request.cache() + "/used"));
}

TEST_CASE("umoci's error for a rejected image is reported") {
  if (!HasUmoci()) return;
  World w;
  const std::string layer = w.layout.AddBlob("application/vnd.oci.image.layer.v1.tar+odd", "x");
  const std::string config =
      w.layout.AddBlob("application/vnd.oci.image.config.v1+json",
                       absl::StrCat(R"({"architecture":")", HostArchitecture(),
                                    R"(","os":"linux","rootfs":{"type":"layers","diff_ids":[")",
                                    w.layout.Digest("x"), R"("]}})"));
  w.layout.WriteIndex({w.layout.AddManifest(config, {layer})});
  const std::string words = RunImageProgram(w.request);
  INFO(words);
  CHECK(absl::StrContains(words, "umoci failed (code 1): create rootfs"));
}

TEST_CASE("an image above its bounds is stopped during unpacking") {
  World w;
  w.UseImage();
  SECTION("bytes") {
    w.request.set_max_image_bytes(8 << 20);
    w.Script(
        "mkdir rootfs; while :; do dd if=/dev/zero bs=1M count=1 2>/dev/null >> "
        "rootfs/f$((i=i+1)); "
        "sleep 0.05; done");
    CHECK(absl::StrContains(RunImageProgram(w.request), "larger than 8 MiB (images.maxImageSize)"));
  }
  SECTION("one file") {
    w.request.set_max_image_bytes(8 << 20);
    // With a hole, so that the check of the total size cannot fire first.
    w.Script("mkdir rootfs; exec dd if=/dev/zero of=rootfs/f bs=1M seek=9 count=1 2>/dev/null");
    CHECK(absl::StrContains(RunImageProgram(w.request), "umoci failed (killed by signal 25)"));
  }
  SECTION("files") {
    w.request.set_max_image_files(100);
    w.Script("mkdir rootfs; while :; do : > rootfs/$((i=i+1)); done");
    CHECK(absl::StrContains(RunImageProgram(w.request), "more than 100 files"));
  }
  SECTION("time") {
    w.request.set_timeout_ms(300);
    w.Script("mkdir rootfs; exec sleep 1000");
    ImageProgram program(w.request);
    CHECK(absl::StrContains(program.Wait(), "unpacking took longer than 300ms"));
    CHECK(program.exit_code == 4);  // nobody's fault
  }
  SECTION("space on the disk") {
    w.request.set_min_free_bytes(int64_t{1} << 60);
    ImageProgram program(w.request);
    CHECK(absl::StrContains(program.Wait(), "MiB free; image unpacking keeps"));
    CHECK(program.exit_code == 4);  // nobody's fault
  }
  SECTION("space in the cache") {
    w.request.set_cache_bytes(2 << 20);
    w.Script("mkdir rootfs; dd if=/dev/zero of=rootfs/f bs=1M count=4 2>/dev/null");
    ImageProgram program(w.request);
    CHECK(absl::StrContains(program.Wait(), "more than images.cacheSize ("));
    CHECK(program.exit_code == 4);  // nobody's fault
  }
  CHECK(w.Names().empty());
}

TEST_CASE("unused images make room, the least recently used first") {
  World w;
  w.request.set_cache_bytes(5 << 20);
  w.Script("mkdir rootfs; dd if=/dev/zero of=rootfs/f bs=1M count=2 2>/dev/null");
  std::vector<std::string> entries;
  const auto provide = [&](int number) {
    w.UseImage(absl::StrCat("{\"Env\":[\"N=", number, "\"]}"));
    w.request.set_link(absl::StrCat("n1-", number, "-0-1"));
    const std::string words = RunImageProgram(w.request);
    entries.push_back(fs::path(w.Entry()).filename());
    return words;
  };
  const auto release = [&](int number) {
    fs::remove(absl::StrCat(w.request.cache(), "/used/n1-", number, "-0-1"));
  };
  CHECK(provide(0) == "");
  CHECK(provide(1) == "");
  CHECK(absl::StrContains(provide(2), "images.cacheSize"));  // both are in use
  CHECK(w.Names() == std::set<std::string>{entries[0], entries[1]});
  release(0);
  release(1);
  CHECK(provide(0) == "");  // cached, and now the most recently used
  release(0);
  CHECK(provide(4) == "");
  CHECK(w.Names() == std::set<std::string>{entries[0], entries[4]});
  release(4);
  w.request.set_cache_bytes(1 << 20);
  w.request.set_layout("");
  CHECK(RunImageProgram(w.request) == "");
  CHECK(w.Names().empty());
}

TEST_CASE("concurrent requests unpack an image once") {
  World w;
  w.UseImage();
  w.Script(absl::StrCat("echo x >> ", w.files.path(), "/count; mkdir rootfs; sleep 0.3"));
  std::vector<std::unique_ptr<ImageProgram>> programs;
  for (int i = 0; i < 4; ++i) {
    w.request.set_link(absl::StrCat("n1-", i, "-0-1"));
    programs.push_back(std::make_unique<ImageProgram>(w.request));
  }
  for (auto& program : programs) CHECK(program->Wait() == "");
  CHECK(ReadText(w.files.path() + "/count") == "x\n");
  for (int i = 0; i < 4; ++i)
    CHECK(fs::exists(absl::StrCat(w.request.cache(), "/used/n1-", i, "-0-1/rootfs")));
}

TEST_CASE("killed while unpacking: no partial image, no process, and the next run starts over") {
  World w;
  w.UseImage();
  w.Script("mkdir rootfs; echo $$ > rootfs/pid.new; mv rootfs/pid.new rootfs/pid; exec sleep 1000");
  const std::string pid_file = w.request.cache() + "/new/rootfs/pid";
  ImageProgram program(w.request);
  REQUIRE(Eventually([&] { return fs::exists(pid_file); }));
  const pid_t unpacker = static_cast<pid_t>(std::stol(ReadText(pid_file)));
  kill(program.pid, SIGTERM);  // the unpacking program continues
  absl::SleepFor(absl::Milliseconds(100));
  CHECK(kill(program.pid, 0) == 0);
  ImageProgram waiting(w.request);
  absl::SleepFor(absl::Milliseconds(100));
  kill(waiting.pid, SIGTERM);  // the waiting one ends
  CHECK(waiting.Wait() == "signal 15");
  kill(program.pid, SIGKILL);
  CHECK(program.Wait() == "signal 9");
  CHECK(Eventually([&] {
    return absl::StrContains(ReadText(absl::StrCat("/proc/", unpacker, "/stat")), ") Z ") ||
           kill(unpacker, 0) != 0;
  }));
  CHECK(w.Names() == std::set<std::string>{"new"});
  fs::create_directories(w.request.cache() + "/old/rootfs");
  w.Script("mkdir rootfs; echo whole > rootfs/f");
  CHECK(RunImageProgram(w.request) == "");
  CHECK(w.Names() == std::set<std::string>{fs::path(w.Entry()).filename()});
  CHECK_FALSE(fs::exists(w.Entry() + "/rootfs/pid"));
}

TEST_CASE("a cache that others can read is refused, and umoci must exist") {
  World w;
  w.UseImage();
  w.request.set_umoci("/nowhere/umoci");
  CHECK(absl::StrContains(RunImageProgram(w.request), "apt-get install umoci"));
  CHECK(w.Names().empty());
  chmod(w.request.cache().c_str(), 0755);
  CHECK(absl::StrContains(RunImageProgram(w.request), "with mode 0700"));
}

TEST_CASE("leftovers are removed when an agent starts") {
  World w;
  fs::create_directory(w.request.cache());
  chmod(w.request.cache().c_str(), 0700);
  fs::create_directories(w.request.cache() + "/new/rootfs/a");
  fs::create_directories(w.request.cache() + "/old/rootfs/a");
  w.request.set_layout("");
  CHECK(RunImageProgram(w.request) == "");
  CHECK(w.Names().empty());
}

TEST_CASE("if the agent is gone, the image is unpacked, but no link keeps it") {
  World w;
  w.UseImage();
  w.Script("mkdir rootfs; sleep 0.3");
  ImageProgram program(w.request);
  program.StopListening();
  program.Wait();
  CHECK(fs::exists(w.Entry() + "/rootfs"));
  CHECK(fs::is_empty(w.request.cache() + "/used"));
}

TEST_CASE("the size of a tree: hard links count once, and paths may exceed PATH_MAX") {
  const TemporaryDirectory files;
  const std::string part(200, 'd');
  const std::string here = fs::current_path();
  std::ofstream(files.path() + "/a") << std::string(1 << 20, 'x');
  fs::create_hard_link(files.path() + "/a", files.path() + "/b");
  const TreeSize flat = MeasureTree(files.path());
  CHECK(flat.files == 3);
  CHECK(flat.bytes >= 1 << 20);
  CHECK(flat.bytes < (1 << 20) + (1 << 16));
  fs::current_path(files.path());
  for (int i = 0; i < 30; ++i) {  // 6000 bytes
    REQUIRE(mkdir(part.c_str(), 0755) == 0);
    REQUIRE(chdir(part.c_str()) == 0);
  }
  const bool device = geteuid() == 0 && mknod("null", S_IFCHR | 0666, makedev(1, 3)) == 0;
  fs::current_path(here);
  CHECK(MeasureTree(files.path()).files == flat.files + 30 + (device ? 1 : 0));
  CHECK(RemoveDeviceFiles(files.path()).ok());
  CHECK(MeasureTree(files.path()).files == flat.files + 30);
  CHECK(fs::current_path() == here);
}

}  // namespace
}  // namespace berth
