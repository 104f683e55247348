// RunHistory::Predict: a weighted distribution of finished runs, and the prediction from it.
//
//   the user's last 60 runs, newest first; the k-th (from 0) weighs
//     0.9^k  x  4 for the same walltime, else the smaller over the larger one
//            x  3 for the same size, else 1 / (1 + |ln of the ratio of sizes|)
//   and one more weight of 1 is divided among
//     the last 50 runs of all users with the same walltime; if there are none, the last 50 of
//     all users, each scaled to the part of its own walltime that it used
//   No run counts for longer than the requested walltime.
//
//   walltime 100 s; one own run of 20 s, same walltime and size (weight 12), which is also the only
//   one of all users (weight 1): expected 20 s
//
// Integers only: the same on every machine. Weights are in 1/2^20, likeness in 1/1024.
#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"
#include "core/base/fixed_log.h"
#include "core/prediction/run_history.h"

namespace berth {
namespace {

constexpr uint64_t kWeightOne = uint64_t{1} << 20;
constexpr uint64_t kDecayNumerator = 9, kDecayDenominator = 10;
constexpr uint64_t kLikenessOne = 1024;
constexpr uint64_t kSameWalltime = 4 * kLikenessOne;
constexpr uint64_t kSameSize = 3 * kLikenessOne;
constexpr uint64_t kOtherKind = kLikenessOne / 8;  // one with, one without walltime, or devices
constexpr int64_t kMillis = 1000;
constexpr int64_t kShortestMs = 10 * kMillis;  // minimum run for the harmonic mean
constexpr int kInverseBits = 44;

uint64_t WalltimeLikeness(int64_t a, int64_t b) {
  if (a == b) return kSameWalltime;
  if (a == 0 || b == 0) return kOtherKind;
  return kLikenessOne * static_cast<uint64_t>(std::min(a, b)) /
         static_cast<uint64_t>(std::max(a, b));
}

// `log_a` and `log_b`: FixedLog2 of their sizes.
uint64_t SizeLikeness(const RunRequest& a, int64_t log_a, const RunRequest& b, int64_t log_b) {
  if (a.devices == b.devices && a.cpu_millis == b.cpu_millis) return kSameSize;
  if ((a.devices > 0) != (b.devices > 0)) return kOtherKind;
  constexpr uint64_t kLnTwo = 45'426;  // of 2^16
  constexpr uint64_t kOne = uint64_t{1} << kLogBits;
  const auto log = static_cast<uint64_t>(std::abs(log_a - log_b));
  return kLikenessOne * kOne / (kOne + ((log * kLnTwo) >> kLogBits));
}

int32_t Seconds(uint64_t ms) {
  const uint64_t seconds = (ms + kMillis - 1) / kMillis;
  return static_cast<int32_t>(std::min<uint64_t>(seconds, std::numeric_limits<int32_t>::max()));
}

// Rounds up to one of 16 steps between powers of two, so that similar jobs stay in one class
// (Demand).
int32_t Coarse(int32_t seconds) {
  int32_t step = 1;
  while (seconds / step >= 32) step *= 2;
  const int64_t up = (int64_t{seconds} + step - 1) / step * step;
  return static_cast<int32_t>(std::min<int64_t>(up, std::numeric_limits<int32_t>::max()));
}

}  // namespace

struct RunHistory::Point {
  int64_t run_ms = 0;
  uint64_t weight = 0;
};

void RunHistory::AddOwn(absl::string_view user, const RunRequest& request,
                        std::vector<Point>* points) const {
  const auto own = of_user_.find(user);
  if (own == of_user_.end()) return;
  const int64_t size = request.devices > 0 ? request.devices : request.cpu_millis;
  const int64_t log_size = FixedLog2(static_cast<uint64_t>(size));
  uint64_t weight = kWeightOne;
  for (auto it = own->second.rbegin(); it != own->second.rend(); ++it) {
    const RunRequest& past = (*it)->run.request;
    const uint64_t walltimes = WalltimeLikeness(past.walltime_s, request.walltime_s);
    const uint64_t sizes = SizeLikeness(past, (*it)->log_size, request, log_size);
    const uint64_t likeness = walltimes * sizes / kLikenessOne;
    points->push_back({(*it)->run.run_ms, weight * likeness / kLikenessOne});
    weight = weight * kDecayNumerator / kDecayDenominator;
  }
}

void RunHistory::AddOthers(const RunRequest& request, std::vector<Point>* points) const {
  const auto alike = of_walltime_.find(request.walltime_s);
  const bool any_alike = alike != of_walltime_.end() && !alike->second.empty();
  const List& list = any_alike ? alike->second : of_all_;
  for (const Kept* kept : list) {
    const int64_t walltime_s = kept->run.request.walltime_s;
    const bool scaled = walltime_s > 0 && request.walltime_s > 0 && !any_alike;
    absl::int128 run_ms = kept->run.run_ms;
    if (scaled) run_ms = run_ms * request.walltime_s / walltime_s;
    run_ms = std::min<absl::int128>(run_ms, std::numeric_limits<int64_t>::max());
    points->push_back({static_cast<int64_t>(run_ms), kWeightOne / list.size()});
  }
}

RunPrediction RunHistory::Predict(absl::string_view user, const RunRequest& request) const {
  if (runs_.empty()) return {};
  std::vector<Point> points;
  points.reserve(kRunsOfUser + std::max(kRunsOfWalltime, kRunsOfAll));
  AddOwn(user, request, &points);
  AddOthers(request, &points);
  const int64_t most_ms =
      request.walltime_s > 0 ? request.walltime_s * kMillis : std::numeric_limits<int64_t>::max();
  uint64_t weights = 0;
  absl::uint128 sum = 0, inverses = 0;
  for (Point& point : points) {
    point.run_ms = std::clamp<int64_t>(point.run_ms, 1, most_ms);
    weights += point.weight;
    sum += absl::uint128(point.weight) * static_cast<uint64_t>(point.run_ms);
    const auto counted = static_cast<uint64_t>(std::max(point.run_ms, kShortestMs));
    inverses += absl::uint128(point.weight) * ((uint64_t{1} << kInverseBits) / counted);
  }
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.run_ms < b.run_ms; });
  // The shortest run such that it and all shorter ones have that many tenths of the weight.
  const auto quantile = [&](uint64_t tenths) {
    uint64_t so_far = 0;
    for (const Point& point : points) {
      so_far += point.weight;
      if (so_far * 10 >= weights * tenths) return static_cast<uint64_t>(point.run_ms);
    }
    return static_cast<uint64_t>(points.back().run_ms);
  };
  const auto within = [&](int32_t seconds) {
    const int64_t most = request.walltime_s > 0 ? request.walltime_s : seconds;
    return static_cast<int32_t>(std::min<int64_t>(seconds, most));
  };
  const auto mean = static_cast<uint64_t>(sum / weights);
  const auto harmonic = static_cast<uint64_t>((absl::uint128(weights) << kInverseBits) /
                                              std::max<absl::uint128>(inverses, 1));
  return {.expected_s = within(Coarse(Seconds(mean))),
          .harmonic_s = within(Seconds(harmonic)),
          .low_s = within(Seconds(quantile(1))),
          .high_s = within(Seconds(quantile(9)))};
}

}  // namespace berth
