// The parts of attach, run, port-forward and cp that need neither a terminal nor a server.
#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "clients/cli/archive.h"
#include "clients/cli/copy_place.h"
#include "clients/cli/port_pair.h"
#include "clients/session/terminal_io.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

struct ScratchDirectory {
  ScratchDirectory() { REQUIRE(mkdtemp(name.data()) != nullptr); }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(name, ignored);
  }
  const std::string& path() const { return name; }
  std::string name = std::filesystem::temp_directory_path() / "berth-cp-XXXXXX";
};

TEST_CASE("detach keys: names become bytes") {
  CHECK(*ParseDetachKeys("ctrl-p,ctrl-q") == "\x10\x11");
  CHECK(*ParseDetachKeys("ctrl-P") == "\x10");
  CHECK(*ParseDetachKeys("ctrl-],q") == "\x1dq");
  CHECK(*ParseDetachKeys("ctrl-@") == std::string(1, '\0'));
  CHECK(ParseDetachKeys("")->empty());
  for (const char* wrong : {"ctrl-", "ctrl-1", "ctrl-pq", "alt-p", "ab", ",", "ctrl-p,"})
    CHECK_FALSE(ParseDetachKeys(wrong).ok());
}

TEST_CASE("detach keys: found across pieces, and what only begins like them is passed on") {
  DetachFilter filter("pq");
  bool detach = false;
  CHECK(filter.Take("a", &detach) == "a");
  CHECK(filter.Take("bp", &detach) == "b");
  CHECK(filter.Take("x", &detach) == "px");
  CHECK(filter.Take("pp", &detach) == "p");
  CHECK_FALSE(detach);
  CHECK(filter.Take("qrest", &detach).empty());
  CHECK(detach);
  DetachFilter none("");
  detach = false;
  CHECK(none.Take("pq", &detach) == "pq");
  CHECK_FALSE(detach);
}

TEST_CASE("port pairs") {
  const auto is = [](const std::string& text, int local, int remote) {
    const auto pair = ParsePortPair(text);
    return pair.ok() && pair->local == local && pair->remote == remote;
  };
  CHECK(is("8888", 8888, 8888));
  CHECK(is("9000:8888", 9000, 8888));
  CHECK(is("0:80", 0, 80));
  CHECK(is(":80", 0, 80));
  CHECK(is("65535", 65535, 65535));
  for (const char* wrong : {"", "0", "80:0", "65536", "80:", "1:2:3", "a", "80:b", "-1"})
    CHECK_FALSE(ParsePortPair(wrong).ok());
  CHECK(LooksLikePorts("80:90:1"));
  CHECK_FALSE(LooksLikePorts("worker-0"));
}

TEST_CASE("places of cp") {
  const auto place = [](const std::string& text) { return **ParseCopyPlace(text); };
  CHECK(place("train:/out/model").job == "train");
  CHECK(place("train:/out/model").directory == "/out");
  CHECK(place("train:/out/model").leaf == "model");
  CHECK(place("train/w-1:x/").task == "w-1");
  CHECK(place("train/w-1:x/").directory == ".");
  CHECK(place("job/train/w-1:/x").job == "train");
  CHECK(place("job/train/w-1:/x").directory == "/");
  CHECK(place("train:a:b").leaf == "a:b");
  CHECK(place("train:/").leaf.empty());
  CHECK(place("train:..").leaf.empty());
  for (const char* local : {"file", "./a:b", "/a:b", "../a:b", "dir/file"})
    CHECK_FALSE(ParseCopyPlace(local)->has_value());
  for (const char* wrong : {"", ":x", "train:"}) CHECK_FALSE(ParseCopyPlace(wrong).ok());
}

TEST_CASE("archives: paths and links that lead out") {
  CHECK(*PathBelow("data", "data") == "");
  CHECK(*PathBelow("./data/a//b/", "data") == "a/b");
  for (const char* bad : {"", "/data", "data/../x", "..", "other", "datax", "data/a/..", "../data"})
    CHECK_FALSE(PathBelow(bad, "data").ok());
  CHECK(LinkStaysBelow("a", "b"));
  CHECK(LinkStaysBelow("a/b", "../c"));
  CHECK(LinkStaysBelow("a/b/c", ".././../d"));
  CHECK_FALSE(LinkStaysBelow("a/b", ".././c/d/.."));  // c/d may be a link to elsewhere
  CHECK_FALSE(LinkStaysBelow("l", "d/e/s/../../etc"));
  CHECK_FALSE(LinkStaysBelow("a", "../b"));
  CHECK_FALSE(LinkStaysBelow("a/b", "../../c"));
  CHECK_FALSE(LinkStaysBelow("a/b", "x/../../../c"));
  CHECK_FALSE(LinkStaysBelow("a", "/etc/passwd"));
  CHECK_FALSE(LinkStaysBelow("a", ""));
  CHECK_FALSE(LinkStaysBelow("", "b"));  // NAME itself
}

TEST_CASE("archives: a tree that was written is read again") {
  const ScratchDirectory from, to;
  const std::filesystem::path source = std::filesystem::path(from.path()) / "tree";
  std::filesystem::create_directories(source / "deep");
  std::ofstream(source / "deep" / "file") << std::string(200'000, 'x');
  chmod((source / "deep" / "file").c_str(), 0640);
  std::filesystem::create_symlink("deep/file", source / "link");
  REQUIRE(mkfifo((source / "pipe").c_str(), 0600) == 0);
  std::string tar;
  ArchiveReport written;
  REQUIRE(WriteTar(
              source, "new",
              [&](absl::string_view piece) {
                tar.append(piece.data(), piece.size());
                return true;
              },
              &written)
              .ok());
  CHECK(written.files == 1);
  CHECK(written.bytes == 200'000);
  CHECK(written.skipped == std::vector<std::string>{"pipe: no file, directory or link"});
  size_t at = 0;
  ArchiveReport read;
  REQUIRE(ExtractTar(
              [&] {
                const std::string piece = tar.substr(std::min(at, tar.size()), 1000);
                at += 1000;
                return piece;
              },
              "new", to.path() + "/copy", &read)
              .ok());
  CHECK(read.files == 1);
  const std::filesystem::path copy = std::filesystem::path(to.path()) / "copy";
  CHECK(std::filesystem::file_size(copy / "deep" / "file") == 200'000);
  CHECK(static_cast<int>(std::filesystem::status(copy / "deep" / "file").permissions()) == 0640);
  CHECK(std::filesystem::read_symlink(copy / "link") == "deep/file");
  CHECK_FALSE(std::filesystem::exists(copy / "pipe"));
  CHECK_FALSE(WriteTar(
                  source, "new", [](absl::string_view) { return false; }, &written)
                  .ok());
  CHECK_FALSE(
      ExtractTar([] { return std::string("no archive"); }, "new", to.path() + "/x", &read).ok());
  CHECK(absl::IsNotFound(ExtractTar([] { return std::string(); }, "new", "/no/such/place", &read)));
}

}  // namespace
}  // namespace berth
