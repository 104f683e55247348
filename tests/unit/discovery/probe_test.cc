// The probe: whatever it reads or loads, the caller gets an answer or an error.
#include "clients/agent/discovery/probe.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/unit/discovery/samples.h"

namespace berth::discovery {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

constexpr absl::Duration kLong = absl::Seconds(60);

std::string Refusal(const absl::StatusOr<Machine>& machine) {
  REQUIRE_FALSE(machine.ok());
  return std::string(machine.status().message());
}

// A probe that is a script.
std::string Script(const TemporaryFolder& folder, const std::string& text) {
  const std::string path = folder.Write("probe.sh", "#!/bin/sh\n" + text + "\n");
  chmod(path.c_str(), 0700);
  return path;
}

TEST_CASE("the probe reads a file, and this machine") {
  const TemporaryFolder folder;
  const std::string path = folder.Write("machine.xml", kTwoSockets);
  const absl::StatusOr<Machine> machine = RunProbe(BERTH_PROBE, {.from = path}, kLong);
  INFO(machine.status());
  REQUIRE(machine.ok());
  CHECK(machine->gpus.size() == 7);
  CHECK(machine->source == path);
  const absl::StatusOr<Machine> here = RunProbe(BERTH_PROBE, {}, kLong);
  REQUIRE(here.ok());
  CHECK(here->host_memory_bytes > 0);
}

TEST_CASE("the probe queries NVML") {
  const absl::StatusOr<Machine> machine =
      RunProbe(BERTH_PROBE, {.nvml_library = BERTH_FAKE_NVML_LIBRARY}, kLong);
  REQUIRE(machine.ok());
  REQUIRE(machine->gpus.size() >= 3);
  CHECK(machine->gpus[0].uuid == "GPU-fake-1");
}

TEST_CASE("errors of the probe name the file and keep their code") {
  const TemporaryFolder folder;
  const std::string none = folder.path() + "/none.xml";
  const auto missing = RunProbe(BERTH_PROBE, {.from = none}, kLong);
  CHECK(absl::IsNotFound(missing.status()));
  CHECK(Refusal(missing) == none + ": no such file");
  const std::string cut =
      folder.Write("cut.xml", std::string(kTwoSockets).substr(0, sizeof kTwoSockets / 2));
  CHECK_THAT(Refusal(RunProbe(BERTH_PROBE, {.from = cut}, kLong)), StartsWith(cut + ": line "));
  const std::string good = folder.Write("good.xml", kTwoSockets);
  CHECK_THAT(Refusal(RunProbe(BERTH_PROBE, {.from = good, .topology_file = cut}, kLong)),
             StartsWith(cut + ": line "));
}

// These reach hwloc itself: well formed, but wrong.
TEST_CASE("XML that hwloc refuses or crashes on is an error with the file's name") {
  const TemporaryFolder folder;
  const std::string text = kTwoSockets;
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"<object type=\"Machine\"", "<object type=\"Nonsense\""},
      {"type=\"PU\" os_index=\"0\" cpuset=\"0x00000001\"", "type=\"PU\" os_index=\"0\""},
      {"nbobjs=\"2\"", "nbobjs=\"4000000000\""},
      {"bridge_pci=\"0000:[00-1f]\"", ""},
      {"<info name=\"Architecture\"", "<unknown name=\"Architecture\""},
      {"</topology>", "</topology><!-- -->"},
      {"gp_index=\"24\"", "gp_index=\"1\""},
  };
  for (const auto& [from, to] : wrong) {
    INFO(to);
    const std::string path = folder.Write("wrong.xml", absl::StrReplaceAll(text, {{from, to}}));
    const absl::StatusOr<Machine> machine = RunProbe(BERTH_PROBE, {.from = path}, kLong);
    if (!machine.ok()) CHECK_THAT(std::string(machine.status().message()), StartsWith(path + ": "));
  }
  const std::string empty = folder.Write("empty.xml", "<topology version=\"2.0\"></topology>");
  CHECK_THAT(Refusal(RunProbe(BERTH_PROBE, {.from = empty}, kLong)), StartsWith(empty + ": "));
}

// Replaces values of the file with hostile ones, one at a time: each gives an answer or an error
// that names the file, in time.
TEST_CASE("no value in a file crashes the reader") {
  const TemporaryFolder folder;
  const std::string text = kTwoSockets;
  const std::vector<std::string> poison = {
      "", "-1", "0xffffffff,0xffffffff,,0xf...f", "%s%n", "99999999999999999999", "0-0,[]:"};
  size_t tried = 0;
  size_t at = 0;
  while ((at = text.find("=\"", at)) != std::string::npos) {
    const size_t end = text.find('"', at + 2);
    if (++tried % 9 == 0) {
      const std::string path = folder.Write(
          "poison.xml",
          absl::StrCat(text.substr(0, at + 2), poison[tried % poison.size()], text.substr(end)));
      const absl::StatusOr<Machine> machine = RunProbe(BERTH_PROBE, {.from = path}, kLong);
      INFO(tried << " " << machine.status());
      if (!machine.ok()) {
        CHECK_THAT(std::string(machine.status().message()), StartsWith(path + ": "));
        CHECK_FALSE(absl::IsDeadlineExceeded(machine.status()));
      }
    }
    at = end;
  }
  CHECK(tried > 250);
}

TEST_CASE("a probe that crashes, hangs, floods or lies is an error, and the caller survives") {
  const TemporaryFolder folder;
  const DiscoverOptions options{.from = "/some/file.xml"};
  const auto refusal = [&](const std::string& script, absl::Duration timeout) {
    return Refusal(RunProbe(Script(folder, script), options, timeout));
  };
  CHECK_THAT(refusal("echo 'Assertion failed' >&2; kill -ABRT $$", kLong),
             StartsWith("/some/file.xml: reading it crashed: ") && Contains("Assertion failed"));
  CHECK_THAT(refusal("exec sleep 100", absl::Milliseconds(200)),
             StartsWith("/some/file.xml: not read after"));
  CHECK_THAT(refusal("exec sleep 100 >&- 2>&-", absl::Milliseconds(200)),
             Contains("not read after"));
  CHECK_THAT(refusal("exec cat /dev/zero", kLong), Contains("too long"));
  CHECK_THAT(refusal("echo nonsense", kLong), Contains("another version"));
  CHECK_THAT(refusal("exit 3", kLong), Contains("exit code 3"));
  CHECK_THAT(refusal("head -c 1000000 /dev/zero >&2; exit 3", kLong), Contains("exit code 3"));
  const auto absent = RunProbe(folder.path() + "/absent", {}, kLong);
  CHECK(absl::IsUnavailable(absent.status()));
}

}  // namespace
}  // namespace berth::discovery
