#include "absl/strings/numbers.h"
#include "policies.h"

namespace custom {
namespace {

int64_t Generation(const berth::Node& node) {
  const auto label = node.spec.labels.find("generation");
  int64_t generation = 0;
  if (label == node.spec.labels.end() || !absl::SimpleAtoi(label->second, &generation)) return 0;
  return generation;
}

class NewestFirstScore final : public berth::NodeScore {
 public:
  absl::string_view name() const override { return "newest_first"; }
  // Lower is better.
  std::optional<berth::NodeRank> Prepare(const berth::ScoreRequest&) const override {
    return [](const berth::Offer& offer) { return -Generation(offer.node); };
  }
};

}  // namespace

std::unique_ptr<berth::NodeScore> MakeNewestFirstScore() {
  return std::make_unique<NewestFirstScore>();
}

}  // namespace custom
