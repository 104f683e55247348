// Decayed usage: a queue's recent allocation, in which the weight of a moment halves every
// half-life.
//
// usage' = held + (usage - held) * 2^(-elapsed / half_life), for each resource separately, in
// 1/1024 of its unit. Example: a half-life without allocation turns 8192 (8 GPUs) into 4096.
#include <algorithm>
#include <map>

#include "absl/numeric/int128.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

constexpr int kFractionBits = 30;  // of the factor
constexpr int64_t kOne = int64_t{1} << kFractionBits;

// 2^(-x / 2^i) for i = 1..16, rounded, in 1/2^30. A factor is the product of those whose bit is
// set.
constexpr int64_t kRoots[] = {
    759250125,  902905650,  984625594,  1028218894, 1050758459, 1062219176, 1067965155, 1070849713,
    1072294797, 1073018025, 1073379864, 1073560829, 1073651323, 1073696573, 1073719198, 1073730511};

int64_t Multiply(int64_t a, int64_t b) {
  return absl::Int128Low64((absl::int128(a) * b) >> kFractionBits) & INT64_MAX;
}

// 2^(-elapsed / half_life), in 1/2^30.
int64_t Factor(Duration elapsed, Duration half_life) {
  const int64_t half = std::max<int64_t>(absl::ToInt64Milliseconds(half_life), 1);
  const int64_t past = std::max<int64_t>(absl::ToInt64Milliseconds(elapsed), 0);
  if (past / half >= kFractionBits) return 0;
  int64_t factor = kOne >> (past / half);
  int64_t rest = past % half;  // as a binary fraction of the half-life, bit by bit
  for (int64_t root : kRoots) {
    rest *= 2;
    if (rest < half) continue;
    rest -= half;
    factor = Multiply(factor, root);
  }
  return factor;
}

}  // namespace

std::vector<NamedAmount> ChargedUsage(const Interner& interner, const Queue& queue,
                                      const UsageCharged& event) {
  std::map<std::string, int64_t> usage;
  for (const NamedAmount& one : queue.usage) usage[one.name] = one.amount;
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (queue.allocated[kind] != 0) usage.emplace(interner.KindName(kind), 0);
  }
  const int64_t factor = Factor(event.elapsed, event.half_life);
  std::vector<NamedAmount> charged;
  for (const auto& [name, before] : usage) {
    const auto kind = interner.FindKind(name);
    const absl::int128 held =
        absl::int128(kind.has_value() ? queue.allocated[*kind] : 0) * kUsageScale;
    const absl::int128 now = held + (absl::int128(before) - held) * factor / kOne;
    if (now > 0) charged.push_back({name, static_cast<int64_t>(now)});
  }
  return charged;
}

}  // namespace berth
