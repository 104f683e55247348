#include "core/sharing/score_board.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

constexpr size_t kMaxRequests = 2 * kMaxMixTypes;
constexpr size_t kMaxScores = 4 << 20;  // about 100 MB

}  // namespace

void ScoreBoard::Set(size_t node, NodeRoom room) {
  if (node >= rooms_.size()) {
    rooms_.resize(node + 1);
    versions_.resize(node + 1, 1);
  }
  rooms_[node] = std::move(room);
  ++versions_[node];
}

void ScoreBoard::Use(PlacementScorer scorer) {
  scorer_ = std::move(scorer);
  by_request_.clear();
}

std::optional<BestPlace> ScoreBoard::Best(const Request& request,
                                          absl::FunctionRef<bool(size_t)> may_have) {
  const size_t most = std::min(kMaxRequests, kMaxScores / (rooms_.size() + 1) + 1);
  if (by_request_.size() >= most && !by_request_.contains(request)) by_request_.clear();
  std::vector<Scored>& row = by_request_[request];
  row.resize(rooms_.size());
  std::optional<size_t> best;
  for (size_t node = 0; node < rooms_.size(); ++node) {
    Scored& scored = row[node];
    if (scored.version != versions_[node]) {
      scored = {.version = versions_[node], .choice = scorer_.Score(request, rooms_[node])};
    }
    if (!scored.choice.fits) continue;
    if (best.has_value() && scored.choice.score >= row[*best].choice.score) continue;
    if (may_have(node)) best = node;
  }
  if (!best.has_value()) return std::nullopt;
  const Choice& choice = row[*best].choice;
  return BestPlace{.node = *best, .from = choice.from, .score = choice.score};
}

}  // namespace berth
