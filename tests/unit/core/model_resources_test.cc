// Amounts as people read them, and the use of devices.
#include <catch2/catch.hpp>

#include "core/model/resources.h"

namespace berth {
namespace {

DeviceUse Whole(size_t device) { return {.whole = DeviceSet::Of(device), .shared = {}}; }
DeviceUse Share(uint8_t device, int32_t share) {
  return {.whole = {}, .shared = {{.device = device, .tasks = 1, .share = share}}};
}

TEST_CASE("amounts in units") {
  CHECK(AmountText(8000, kWhole) == "8");
  CHECK(AmountText(2500, kWhole) == "2.5");
  CHECK(AmountText(1, kWhole) == "0.001");
  CHECK(AmountText(0, kWhole) == "0");
  CHECK(AmountText(-500, kWhole) == "-0.5");
  CHECK(AmountText(-1500, kWhole) == "-1.5");
  CHECK(AmountText(4096, 1) == "4096");
  CHECK(UnitOf("cpu") == 1);
  CHECK(UnitOf("gpu") == kWhole);
}

TEST_CASE("shares of devices add up, whole ones do not") {
  DeviceUse use = Whole(0) + Share(2, 300) + Share(1, 500) + Share(2, 400);
  CHECK(use.shared.size() == 2);
  CHECK(use.shared[0].device == 1);
  CHECK(use.SharesOf(2)->tasks == 2);
  CHECK(use.FreeOf(0) == 0);
  CHECK(use.FreeOf(1) == 500);
  CHECK(use.FreeOf(2) == 300);
  CHECK(use.FreeOf(3) == kWhole);
  CHECK(use.InUse().Count() == 3);
  CHECK(use.Full().Count() == 1);
  DeviceSet all = DeviceSet::Of(0);
  for (size_t i : {1, 2, 3}) all.Add(i);
  CHECK(use.FreeIn(all) == 1800);
  use -= Share(2, 300);
  CHECK(use.FreeOf(2) == 600);
  use -= Share(2, 400);
  CHECK(use.SharesOf(2) == nullptr);
  CHECK(use == Whole(0) + Share(1, 500));
}

TEST_CASE("capacity for more") {
  const DeviceUse use = Whole(0) + Share(1, 600) + Share(2, 600) + Share(2, 400);
  CHECK(use.HasRoomFor({}));
  CHECK(use.HasRoomFor(Whole(3)));
  CHECK_FALSE(use.HasRoomFor(Whole(0)));
  CHECK_FALSE(use.HasRoomFor(Whole(1)));
  CHECK(use.HasRoomFor(Share(1, 400)));
  CHECK_FALSE(use.HasRoomFor(Share(1, 401)));
  CHECK_FALSE(use.HasRoomFor(Share(2, 1)));
  CHECK_FALSE(use.HasRoomFor(Share(0, 1)));
}

TEST_CASE("a whole device conflicts with any other use of it, shares do not") {
  const DeviceUse use = Whole(0) + Share(1, 900);
  CHECK_FALSE(use.Clashes(Share(1, 900)));
  CHECK_FALSE(use.Clashes(Whole(2)));
  CHECK(use.Clashes(Whole(0)));
  CHECK(use.Clashes(Whole(1)));
  CHECK(use.Clashes(Share(0, 1)));
}

TEST_CASE("the larger of both, device by device") {
  DeviceUse use = Share(1, 600) + Share(2, 100);
  use.Widen(Whole(0) + Share(1, 300) + Share(1, 200) + Share(3, 50));
  CHECK(use.FreeOf(0) == 0);
  CHECK(use.FreeOf(1) == 400);
  CHECK(use.SharesOf(1)->tasks == 2);
  CHECK(use.FreeOf(2) == 900);
  CHECK(use.FreeOf(3) == 950);
}

}  // namespace
}  // namespace berth
