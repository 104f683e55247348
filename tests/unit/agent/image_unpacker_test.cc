// Which task waits for which image, with a script instead of berth-image.
#include "clients/agent/image_unpacker.h"

#include <sys/stat.h>

#include <fstream>

#include "absl/strings/match.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

constexpr TaskId kFirst = {1, 0, 1}, kSecond = {2, 0, 1}, kThird = {3, 0, 1};

struct World {
  // The script gets the request as $1.
  explicit World(const std::string& script) {
    const std::string program = files.path() + "/program";
    std::ofstream(program) << "#!/bin/sh\necho x >> " << files.path() << "/runs\n" << script;
    chmod(program.c_str(), 0755);
    unpacker = *ImageUnpacker::Create(program);
  }
  void Begin(const TaskId& id, const std::string& layout) {
    agent::v1::ImageRequest request;
    request.set_layout(layout);
    request.set_link(ToString(id));
    unpacker->Begin(id, "small:1", request);
  }
  // Waits for this many results.
  std::map<TaskId, std::string> Await(size_t count) {
    REQUIRE(Eventually([&] {
      for (const auto& result : unpacker->Poll())
        results[result.id] = std::string(result.status.message());
      return results.size() >= count;
    }));
    return results;
  }
  size_t Runs() const {
    std::string text;
    ReadWholeFile(files.path() + "/runs", &text);
    return text.size() / 2;
  }

  TemporaryDirectory files;
  std::unique_ptr<ImageUnpacker> unpacker;
  std::map<TaskId, std::string> results;
};

TEST_CASE("tasks of one image are unpacked one at a time, different images in parallel") {
  World w("case $1 in *slow*) until [ -e ${0%/*}/go ]; do sleep 0.01; done;; esac");
  w.Begin(kFirst, "/slow");
  w.Begin(kSecond, "/slow");
  w.Begin(kThird, "/quick");
  CHECK(w.Await(1) == std::map<TaskId, std::string>{{kThird, ""}});
  CHECK(Eventually([&] { return w.Runs() == 2; }));  // the slow one may start last
  std::ofstream(w.files.path() + "/go");
  CHECK(w.Await(3) == std::map<TaskId, std::string>{{kFirst, ""}, {kSecond, ""}, {kThird, ""}});
  CHECK(w.Runs() == 3);
}

TEST_CASE("a failure reaches every task that waits for the same image") {
  World w("sleep 0.2; echo no good; exit 1");
  w.Begin(kFirst, "/a");
  w.Begin(kSecond, "/a");
  const auto results = w.Await(2);
  CHECK(results.at(kFirst) == "image small:1: no good\n");
  CHECK(results.at(kSecond) == "image small:1: no good\n");
  CHECK(w.Runs() == 1);
}

TEST_CASE("a task that is forgotten does not affect others") {
  World w("[ -e ${0%/*}/go ] || exec sleep 1000");
  w.Begin(kFirst, "/a");
  w.Begin(kSecond, "/a");
  w.Begin(kThird, "/a");
  REQUIRE(Eventually([&] { return w.Runs() == 1; }));
  std::ofstream(w.files.path() + "/go");
  w.unpacker->Forget(kSecond);
  w.unpacker->Forget(kFirst);  // ends by SIGTERM
  const auto results = w.Await(2);
  CHECK(absl::StrContains(results.at(kFirst), "signal 15"));
  CHECK(results.at(kThird) == "");
  CHECK(w.Runs() == 2);
}

TEST_CASE("a missing program is a failure that is reported later") {
  World w("");
  w.unpacker = *ImageUnpacker::Create("/nowhere/berth-image");
  w.Begin(kFirst, "/a");
  CHECK(absl::StrContains(w.Await(1).at(kFirst), "spawn /nowhere/berth-image"));
}

}  // namespace
}  // namespace berth
