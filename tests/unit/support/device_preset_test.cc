#include "support/device_preset.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a matrix of links is parsed as nvidia-smi prints it") {
  const auto topology =
      ParseDeviceMatrix({"X NV2 SYS ?", "NV2  X SYS PIX", "SYS\tSYS X NV2", "? ? NV2 X"});
  INFO(topology.status());
  REQUIRE(topology.ok());
  REQUIRE(topology->links_size() == 3);
  CHECK(topology->links(0).link() == v1::LINK_CLASS_NVLINK);
  CHECK(topology->links(0).count() == 2);
  CHECK(topology->links(1).link() == v1::LINK_CLASS_SYS);
  CHECK(topology->links(2).link() == v1::LINK_CLASS_PIX);
  CHECK(topology->between() == std::string("\1\2\0\2\3\1", 6));
}

TEST_CASE("an invalid matrix is refused with the position of the error") {
  const auto why = [](const std::vector<std::string>& rows) {
    return std::string(ParseDeviceMatrix(rows).status().message());
  };
  CHECK_THAT(why({"X SYS", "SYS"}), Contains("row 2 has 1 cells"));
  CHECK_THAT(why({"X SYS", "SYS NV1"}), Contains("row 2: cell 2 is not X"));
  CHECK_THAT(why({"X NV0", "NV0 X"}), Contains("row 1, cell 2: NV0 is not a link"));
  CHECK_THAT(why({"X SYS", "PIX X"}), Contains("row 1, cell 2: SYS, but the reverse is PIX"));
}

TEST_CASE("all known machines have valid matrices, with and without NICs") {
  for (const char* name :
       {"ac922", "dgx-1", "dgx-2", "dgx-a100", "hgx-h100", "mi250x", "p5", "pcie-8"}) {
    INFO(name);
    const auto preset = FindDevicePreset(name);
    REQUIRE(preset.ok());
    CHECK(preset->numa.size() == static_cast<size_t>(preset->gpus + preset->nics));
    for (int nics : {0, preset->nics}) {
      const auto topology = PresetTopology(*preset, preset->gpus, nics, 64, 1 << 20);
      INFO(topology.status());
      REQUIRE(topology.ok());
      const auto devices = static_cast<size_t>(preset->gpus + nics);
      CHECK(topology->between().size() == devices * (devices - 1) / 2);
      CHECK(topology->numa_nodes_size() >= 2);
    }
    CHECK_FALSE(PresetTopology(*preset, preset->gpus + 1, 0, 64, 0).ok());
  }
  CHECK_THAT(std::string(FindDevicePreset("dgx-9").status().message()), Contains("dgx-1, dgx-2"));
}

}  // namespace
}  // namespace berth
