// The best set of devices, compared with an exhaustive search.
#include <bit>
#include <catch2/catch.hpp>

#include "core/devices/best_set.h"
#include "tests/property/dice.h"
#include "tests/property/naive_best_set.h"
#include "tests/unit/core/testing/layouts.h"

namespace berth {
namespace {

using testing::Matrix;
using testing::Members;
using testing::NaiveBestSet;

struct Machine {
  explicit Machine(const Matrix& matrix) : name(matrix.name) {
    testing::SetDevices(matrix, &spec);
    layout = std::make_unique<DeviceLayout>(LayoutKeyOf(spec));
    gpus = layout->Of("gpu");
    REQUIRE(gpus != nullptr);
    REQUIRE(gpus->count == static_cast<size_t>(matrix.gpus));
  }
  std::string name;
  NodeSpec spec;
  std::unique_ptr<DeviceLayout> layout;
  const KindLayout* gpus = nullptr;
};

Members MembersOf(KindMask mask) {
  Members members;
  for (size_t i = 0; i < kMaxLaidOut; ++i) {
    if ((mask >> i & 1) != 0) members.push_back(i);
  }
  return members;
}

void Compare(const Machine& machine, KindMask candidates, int size, const LinkFloor& floor) {
  INFO(machine.name << ", candidates " << candidates << ", size " << size << ", least score "
                    << floor.score << ", least MB/s " << floor.mb_per_s);
  const KindMask found =
      BestSet(*machine.gpus, {.candidates = candidates, .size = size, .floor = floor});
  NaiveBestSet naive(machine.spec, MembersOf(candidates), {floor.score, floor.mb_per_s});
  REQUIRE(MembersOf(found) == naive.Find(static_cast<size_t>(size)));
}

LinkFloor AnyFloor(Dice& dice) {
  LinkFloor floor;
  if (dice.Chance(50)) floor.score = LeastScore(static_cast<LinkClass>(dice.Between(0, 6)));
  if (dice.Chance(30)) floor.mb_per_s = dice.Between(1, 100) * 1000;
  return floor;
}

TEST_CASE("devices: every free mask and size of known machines with up to eight GPUs") {
  for (const Matrix& matrix : testing::KnownMachines()) {
    if (matrix.gpus > 8) continue;
    const Machine machine(matrix);
    CHECK_FALSE(machine.gpus->best.empty());
    for (KindMask free = 1; free < KindMask{1} << machine.gpus->count; ++free) {
      for (int size = 1; size <= std::popcount(free); ++size) Compare(machine, free, size, {});
    }
  }
}

TEST_CASE("devices: known machines with a floor, and larger ones") {
  Dice dice(5);
  for (const Matrix& matrix : testing::KnownMachines()) {
    const Machine machine(matrix);
    const int tries = matrix.gpus > 8 ? 12 : 150;
    for (int i = 0; i < tries; ++i) {
      const auto all = (KindMask{1} << machine.gpus->count) - 1;
      KindMask free = dice.Chance(20) ? all : all & static_cast<KindMask>(dice.Below(1 << 16));
      if (free == 0) free = all;
      Compare(machine, free, dice.Between(1, std::popcount(free)), AnyFloor(dice));
    }
  }
}

// Any link classes between any devices, unlike real machines.
Matrix AnyMatrix(Dice& dice, int gpus, int nics) {
  static const std::vector<std::string> kCells = {"NV1",  "NV2", "PIX",  "PXB", "PHB",
                                                  "NODE", "SYS", "SYS+", "?"};
  const int all = gpus + nics;
  const int kinds = dice.Between(1, static_cast<int>(kCells.size()));
  std::vector<std::vector<std::string>> cells(
      static_cast<size_t>(all), std::vector<std::string>(static_cast<size_t>(all), "X"));
  Matrix matrix{.name = "any", .gpus = gpus};
  for (size_t a = 0; a < cells.size(); ++a) {
    for (size_t b = a + 1; b < cells.size(); ++b) {
      cells[a][b] = cells[b][a] = kCells[static_cast<size_t>(dice.Below(kinds))];
    }
  }
  cells[0][1] = cells[1][0] = kCells[0];  // at least one link is known
  for (const auto& row : cells) {
    matrix.rows.push_back(absl::StrJoin(row, " "));
    matrix.numa.push_back(dice.Between(-1, 1));
  }
  return matrix;
}

TEST_CASE("devices: random machines") {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    Matrix matrix = AnyMatrix(dice, dice.Between(2, 10), dice.Between(0, 3));
    matrix.name = absl::StrCat("seed ", seed);
    const Machine machine(matrix);
    const auto all = (KindMask{1} << machine.gpus->count) - 1;
    for (int i = 0; i < 12; ++i) {
      const KindMask free = 1 + static_cast<KindMask>(dice.Below(static_cast<int>(all)));
      Compare(machine, free, dice.Between(1, std::popcount(free)), AnyFloor(dice));
    }
  }
}

TEST_CASE("devices: the counted sets can be taken one after the other, without overlap") {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    const Machine machine(AnyMatrix(dice, dice.Between(2, 9), 0));
    SetQuery query{.candidates = (KindMask{1} << machine.gpus->count) - 1,
                   .size = dice.Between(1, 3),
                   .floor = AnyFloor(dice)};
    const int64_t counted = CountSets(*machine.gpus, query, 100);
    for (int64_t i = 0; i <= counted; ++i) {
      const KindMask set = BestSet(*machine.gpus, query);
      REQUIRE((set != 0) == (i < counted));
      REQUIRE((set & ~query.candidates) == 0);
      REQUIRE(MeetsFloor(*machine.gpus, set, query.floor));
      query.candidates &= ~set;
    }
  }
}

// The best worst link of any ring, by exhaustive search.
LinkScore BestRing(const KindLayout& layout, Members members) {
  LinkScore best = 0;
  do {
    LinkScore worst = std::numeric_limits<LinkScore>::max();
    for (size_t i = 0; i < members.size(); ++i) {
      worst = std::min(worst, layout.Score(members[i], members[(i + 1) % members.size()]));
    }
    best = std::max(best, worst);
  } while (std::next_permutation(members.begin() + 1, members.end()));
  return best;
}

TEST_CASE("devices: rings have the best worst link") {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Dice dice(seed);
    const Machine machine(seed == 0 ? testing::Dgx1() : AnyMatrix(dice, dice.Between(3, 7), 0));
    const auto all = (KindMask{1} << machine.gpus->count) - 1;
    const std::vector<size_t> ring = RingOrder(*machine.gpus, all);
    REQUIRE(ring.size() == machine.gpus->count);
    REQUIRE(ring.front() == 0);
    LinkScore worst = std::numeric_limits<LinkScore>::max();
    for (size_t i = 0; i < ring.size(); ++i) {
      worst = std::min(worst, machine.gpus->Score(ring[i], ring[(i + 1) % ring.size()]));
    }
    CHECK(worst == BestRing(*machine.gpus, MembersOf(all)));
  }
}

}  // namespace
}  // namespace berth
