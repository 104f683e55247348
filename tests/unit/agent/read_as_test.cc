// Files that the agent reads with the rights of a task's user.
#include "clients/agent/read_as.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/agent/fakes.h"

namespace berth {
namespace {

using testing::TemporaryDirectory;

TaskUser Nobody() {
  return {.account = "nobody", .name = "nobody", .uid = 65534, .gid = 65534, .groups = {65534}};
}

std::string FileWith(const TemporaryDirectory& directory, const std::string& text, mode_t mode) {
  const std::string path = directory.path() + "/secret";
  std::ofstream(path, std::ios::binary) << text;
  chmod(path.c_str(), mode);
  return path;
}

TEST_CASE("read as: the value is the file, without a newline at its end") {
  const TemporaryDirectory directory;
  const TaskUser self;
  CHECK(ReadValueAs(self, FileWith(directory, "s3cret\n", 0600)).value() == "s3cret");
  CHECK(ReadValueAs(self, FileWith(directory, "two\nlines\n\n", 0600)).value() == "two\nlines\n");
  CHECK(ReadValueAs(self, FileWith(directory, "", 0600)).value().empty());
  const std::string longest(kMaxFileValue, 'x');
  CHECK(ReadValueAs(self, FileWith(directory, longest, 0600)).value() == longest);
}

TEST_CASE("read as: what cannot be a value is refused, and never shown") {
  const TemporaryDirectory directory;
  const TaskUser self;
  const auto why = [&](const std::string& path) {
    const absl::Status status = ReadValueAs(self, path).status();
    CHECK(absl::IsFailedPrecondition(status));
    return std::string(status.message());
  };
  CHECK(why("/no/such") == "cannot read /no/such: No such file or directory");
  CHECK(why("/tmp") == "cannot read /tmp: it is not a regular file");
  const std::string nul = FileWith(directory, std::string("se\0cret", 7), 0600);
  CHECK(why(nul) == "cannot read " + nul + ": it contains NUL");
  const std::string large = FileWith(directory, std::string(kMaxFileValue + 1, 's'), 0600);
  CHECK(why(large) == "cannot read " + large + ": more than 32768 bytes");
  const std::string fifo = directory.path() + "/fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(why(fifo) == "cannot read " + fifo + ": it is not a regular file");
}

TEST_CASE("read as: with the rights of the user, not of the agent") {
  if (geteuid() != 0) {
    WARN("not root");
    return;
  }
  const TemporaryDirectory directory;
  chmod(directory.path().c_str(), 0755);
  const std::string path = FileWith(directory, "roots", 0600);
  CHECK(ReadValueAs(TaskUser(), path).value() == "roots");
  CHECK(ReadValueAs(Nobody(), path).status().message() ==
        "cannot read " + path + ": Permission denied");
  chmod(path.c_str(), 0644);
  CHECK(ReadValueAs(Nobody(), path).value() == "roots");
}

}  // namespace
}  // namespace berth
