// Dividing a GPU through NVML: with a fake shared library, loaded and called like the real one.
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "absl/strings/str_join.h"
#include "clients/agent/discovery/nvml_divide.h"
#include "clients/agent/discovery/nvml_join.h"
#include "clients/agent/discovery/probe.h"
#include "tests/unit/discovery/samples.h"

namespace berth::discovery {
namespace {

using Catch::Matchers::Contains;

constexpr char kSevenfold[] =
    "1g.10gb 0 1 1\n1g.10gb 1 2 1\n1g.10gb 2 3 1\n1g.10gb 3 4 1\n"
    "1g.10gb 4 5 1\n1g.10gb 5 6 1\n1g.10gb 6 7 1\n";

// GPU 2 of the fake driver, divided into these instances.
class Divided {
 public:
  explicit Divided(const char* instances) {
    folder_.Write("nvml.gpu2", instances);
    folder_.Write("nvml.gpu2.next", "20");
    state_ = folder_.Write("nvml", "");
    setenv("BERTH_FAKE_NVML_STATE", state_.c_str(), 1);
  }
  ~Divided() { unsetenv("BERTH_FAKE_NVML_STATE"); }

  void Tell(const std::string& line) { std::ofstream(state_, std::ios::app) << line << "\n"; }

  absl::Status Divide(const std::vector<GpuPart>& parts, const std::string& uuid = "GPU-fake-3",
                      const char* library = BERTH_FAKE_NVML_LIBRARY) {
    const auto nvml = NvmlLibrary::Open(library);
    REQUIRE(nvml.ok());
    return DivideGpu(**nvml, uuid, parts);
  }

  // The instances that discovery finds, one "UUID PROFILE" a line.
  std::string Found() {
    Machine machine;
    JoinNvmlLibrary(BERTH_FAKE_NVML_LIBRARY, &machine);
    REQUIRE(machine.gpus.size() == 3);
    return absl::StrJoin(machine.gpus[2].mig, "\n", [](std::string* out, const MigInstance& mig) {
      absl::StrAppend(out, mig.uuid, " ", mig.profile);
    });
  }

 private:
  TemporaryFolder folder_;
  std::string state_;
};

TEST_CASE("a divided GPU is divided again") {
  Divided gpu(kSevenfold);
  CHECK_THAT(gpu.Found(), Contains("MIG-fake-30001 1g.10gb") && Contains("MIG-fake-30007 1g.10gb"));
  REQUIRE(gpu.Divide({{"3g.40gb", 0}, {"3g.40gb", 4}}).ok());
  CHECK(gpu.Found() == "MIG-fake-30020 3g.40gb\nMIG-fake-30021 3g.40gb");
  REQUIRE(gpu.Divide({{"4g.40gb", 0}, {"1g.10gb+me", 4}, {"1g.20gb", 6}}).ok());
  CHECK(gpu.Found() == "MIG-fake-30022 4g.40gb\nMIG-fake-30023 1g.10gb+me\nMIG-fake-30024 1g.20gb");
}

TEST_CASE("a GPU in MIG mode that is not divided is divided") {
  Divided gpu("");
  CHECK(gpu.Found().empty());
  REQUIRE(gpu.Divide({{"7g.80gb", 0}}).ok());
  CHECK(gpu.Found() == "MIG-fake-30020 7g.80gb");
}

TEST_CASE("leftovers of an interrupted division are cleared") {
  // The second instance has no compute instance: it is not reported, but it occupies its place.
  Divided gpu("3g.40gb 0 1 1\n3g.40gb 4 2 0\n");
  CHECK(gpu.Found() == "MIG-fake-30001 3g.40gb");
  REQUIRE(gpu.Divide({{"2g.20gb", 4}}).ok());
  CHECK(gpu.Found() == "MIG-fake-30020 2g.20gb");
}

TEST_CASE("no instance is destroyed if the obstacle is visible before") {
  Divided gpu(kSevenfold);
  const std::string before = gpu.Found();
  const auto refused = [&](const absl::Status& status, const char* why) {
    CHECK_THAT(std::string(status.message()), Contains(why));
    CHECK(gpu.Found() == before);
  };
  refused(gpu.Divide({{"3g.40gb", 0}}, "GPU-fake-9"), "NVML reports no GPU GPU-fake-9");
  refused(gpu.Divide({{"3g.40gb", 0}}, "GPU-fake-1"), "GPU-fake-1 is not in MIG mode");
  refused(gpu.Divide({{"3g.20gb", 0}}), "has no profile 3g.20gb; it has: 1g.10gb, 2g.20gb, 3g");
  refused(gpu.Divide({{"3g.40gb", 0}, {"3g.40gb", 2}}), "has no placement 3g.40gb@2");
  gpu.Tell("busy 2 1");
  refused(gpu.Divide({{"3g.40gb", 0}}), "is in use: instance MIG-fake-30001 has 1 processes");
  gpu.Tell("busy 2 0\nstuck 2 1");
  refused(gpu.Divide({{"3g.40gb", 0}}), "destroying an instance of 1g.10gb: In use by another");
  gpu.Tell("stuck 2 0");
  CHECK(gpu.Divide({{"3g.40gb", 0}}).ok());
}

TEST_CASE("a driver that fails half way leaves the instances that it created") {
  Divided gpu(kSevenfold);
  gpu.Tell("room 2 1");
  const absl::Status status = gpu.Divide({{"3g.40gb", 0}, {"3g.40gb", 4}});
  CHECK_THAT(std::string(status.message()),
             Contains("GPU GPU-fake-3: creating 3g.40gb@4: Insufficient Resources"));
  CHECK(gpu.Found() == "MIG-fake-30020 3g.40gb");
}

TEST_CASE("a driver that is too old to divide is reported") {
  Divided gpu("");
  const absl::Status status =
      gpu.Divide({{"3g.40gb", 0}}, "GPU-fake-3", BERTH_FAKE_NVML_OLD_LIBRARY);
  CHECK(absl::IsUnimplemented(status));
  CHECK_THAT(std::string(status.message()), Contains("the driver is too old"));
}

TEST_CASE("the probe divides within a timeout, and passes on errors") {
  Divided gpu(kSevenfold);
  const auto divide = [](std::vector<GpuPart> parts, absl::Duration timeout = absl::Seconds(20)) {
    return RunDivision(BERTH_PROBE, BERTH_FAKE_NVML_LIBRARY, "GPU-fake-3", parts, timeout);
  };
  REQUIRE(divide({{"1g.10gb+me", 2}, {"3g.40gb", 4}}).ok());
  CHECK(gpu.Found() == "MIG-fake-30020 1g.10gb+me\nMIG-fake-30021 3g.40gb");
  const absl::Status refused = divide({{"9g.90gb", 0}});
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains("has no profile 9g.90gb"));
  gpu.Tell("slow 2 20000");
  const absl::Status late = divide({{"7g.80gb", 0}}, absl::Seconds(1));
  CHECK(absl::IsDeadlineExceeded(late));
  CHECK_THAT(std::string(late.message()), Contains("GPU-fake-3: not divided after 1s"));
  CHECK(gpu.Found().empty());  // it was interrupted after it had cleared the GPU
  CHECK(absl::IsNotFound(RunDivision(BERTH_PROBE, "/nonexistent/libnvidia-ml.so.1", "GPU-fake-3",
                                     {{"7g.80gb", 0}}, absl::Seconds(20))));
}

TEST_CASE("parts are parsed as they are printed") {
  GpuPart part;
  REQUIRE(ParsePart(ToString(GpuPart{"1g.10gb+me", 6}), &part));
  CHECK(part.profile == "1g.10gb+me");
  CHECK(part.start == 6);
  for (const char* wrong : {"", "3g.40gb", "@1", "3g.40gb@", "3g.40gb@x", "3g.40gb@-1"})
    CHECK_FALSE(ParsePart(wrong, &part));
}

}  // namespace
}  // namespace berth::discovery
