#include "core/devices/mig_geometry.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

// A model is recognized by a word of its name and its memory according to NVML, which is slightly
// less than the nominal size.
struct Model {
  absl::string_view word;
  int64_t least_gib, most_gib;
  // In gigabytes, as in profile names: of one slice of memory, two, four, all.
  int one, two, four, all;
};
constexpr std::array<Model, 6> kModels = {{
    {"A100", 36, 44, 5, 10, 20, 40},
    {"A100", 72, 88, 10, 20, 40, 80},
    {"H100", 72, 88, 10, 20, 40, 80},
    {"H100", 90, 94, 12, 24, 47, 94},  // the NVL variant
    {"H200", 130, 150, 18, 35, 71, 141},
    {"B200", 170, 190, 23, 45, 90, 180},
}};

constexpr uint8_t Starts(std::initializer_list<int> slices) {
  uint8_t bits = 0;
  for (const int slice : slices) bits = static_cast<uint8_t>(bits | 1 << slice);
  return bits;
}

MigGeometry GeometryFor(const Model& m) {
  const auto named = [](int compute, int gigabytes, absl::string_view extra = "") {
    return absl::StrCat(compute, "g.", gigabytes, "gb", extra);
  };
  const uint8_t any = Starts({0, 1, 2, 3, 4, 5, 6});
  return {{{named(1, m.one), 1, 1, any, 7},
           {named(1, m.one, "+me"), 1, 1, any, 1},  // with the video and image engines
           {named(1, m.two), 1, 2, Starts({0, 2, 4, 6}), 4},
           {named(2, m.two), 2, 2, Starts({0, 2, 4}), 3},
           {named(3, m.four), 3, 4, Starts({0, 4}), 2},
           {named(4, m.four), 4, 4, Starts({0}), 1},
           {named(7, m.all), 7, 8, Starts({0}), 1}}};
}

const std::vector<MigGeometry>& Geometries() {
  static const auto* const all = [] {
    auto* made = new std::vector<MigGeometry>;
    for (const Model& model : kModels) made->push_back(GeometryFor(model));
    return made;
  }();
  return *all;
}

// "A100" is a word of "NVIDIA A100-SXM4-40GB", but "B200" is not one of "NVIDIA GB200".
bool HasWord(absl::string_view name, absl::string_view word) {
  for (size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !absl::ascii_isalnum(static_cast<unsigned char>(name[at - 1]));
    if (begins &&
        (end == name.size() || !absl::ascii_isalnum(static_cast<unsigned char>(name[end]))))
      return true;
  }
  return false;
}

// What the instances use of a GPU.
struct Taken {
  unsigned memory = 0;  // bit n: slice n
  int compute = 0;
  std::array<int, 8> count = {};  // by profile

  static unsigned SlicesOf(const MigProfile& profile, int start) {
    return ((1u << profile.memory_slices) - 1) << start;
  }
  bool Fits(const MigGeometry& geometry, size_t p, int start) const {
    const MigProfile& profile = geometry.profiles[p];
    return (profile.starts >> start & 1) != 0 && (memory & SlicesOf(profile, start)) == 0 &&
           compute + profile.compute_slices <= kMigComputeSlices && count[p] < profile.most;
  }
  void Add(const MigGeometry& geometry, size_t p, int start) {
    memory |= SlicesOf(geometry.profiles[p], start);
    compute += geometry.profiles[p].compute_slices;
    ++count[p];
  }
};

// Tries every layout, slice by slice: a few thousand, as few profiles fit together.
class LayoutSearch {
 public:
  LayoutSearch(const MigGeometry& geometry, absl::Span<const MigDemand> demand)
      : geometry_(geometry) {
    for (const MigDemand& wish : demand) {
      const MigProfile* profile = geometry.Find(wish.profile);
      if (profile == nullptr) continue;
      const auto p = static_cast<size_t>(profile - geometry.profiles.data());
      if (!wanted_.contains(p)) order_.push_back(p);
      wanted_[p] += wish.count;
    }
    wanted_.try_emplace(0, 0);
  }

  std::vector<MigPart> Run() {
    Visit(0, {});
    std::vector<MigPart> parts;
    for (const auto& [p, start] : best_) parts.push_back({geometry_.profiles[p].name, start});
    return parts;
  }

 private:
  using Parts = std::vector<std::pair<size_t, int>>;

  // Leaving `slice` empty is tried last. Among equally good layouts the first one found is kept.
  void Visit(int slice, const Taken& taken) {
    if (slice == kMigMemorySlices) return Judge(taken);
    for (const auto& [p, count] : wanted_) {
      if (!taken.Fits(geometry_, p, slice)) continue;
      Taken with = taken;
      with.Add(geometry_, p, slice);
      parts_.emplace_back(p, slice);
      Visit(slice + geometry_.profiles[p].memory_slices, with);
      parts_.pop_back();
    }
    Visit(slice + 1, taken);
  }

  // Served instances of each demand, in order; then the number of smallest ones.
  void Judge(const Taken& taken) {
    std::vector<int> score;
    for (const size_t p : order_) score.push_back(std::min(taken.count[p], wanted_[p]));
    for (const auto& [p, count] : wanted_) {
      if (p != 0 && taken.count[p] > count) return;  // a larger instance than necessary
    }
    score.push_back(taken.count[0]);
    if (!best_score_.empty() && score <= best_score_) return;
    best_score_ = std::move(score);
    best_ = parts_;
  }

  const MigGeometry& geometry_;
  std::vector<size_t> order_;     // profiles in the order of the demands
  std::map<size_t, int> wanted_;  // by profile; always includes the smallest
  Parts parts_;
  std::vector<int> best_score_;
  Parts best_;
};

}  // namespace

const MigProfile* MigGeometry::Find(absl::string_view name) const {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [name](const MigProfile& p) { return p.name == name; });
  return found == profiles.end() ? nullptr : &*found;
}

const MigGeometry* MigGeometryOf(absl::string_view model, int64_t memory_bytes) {
  const int64_t gib = memory_bytes >> 30;
  for (size_t i = 0; i < kModels.size(); ++i) {
    const Model& known = kModels[i];
    if (gib >= known.least_gib && gib <= known.most_gib && HasWord(model, known.word))
      return &Geometries()[i];
  }
  return nullptr;
}

std::vector<MigPart> MigPartsBeside(const MigGeometry& geometry, absl::Span<const MigPart> there) {
  Taken taken;
  for (const MigPart& part : there) {
    const MigProfile* profile = geometry.Find(part.profile);
    if (profile == nullptr) continue;
    taken.Add(geometry, static_cast<size_t>(profile - geometry.profiles.data()), part.start);
  }
  std::vector<MigPart> fit;
  for (size_t p = 0; p < geometry.profiles.size(); ++p) {
    for (int start = 0; start < kMigMemorySlices; ++start) {
      if (taken.Fits(geometry, p, start)) fit.push_back({geometry.profiles[p].name, start});
    }
  }
  return fit;
}

std::vector<MigPart> BestMigLayout(const MigGeometry& geometry,
                                   absl::Span<const MigDemand> demand) {
  return LayoutSearch(geometry, demand).Run();
}

}  // namespace berth
