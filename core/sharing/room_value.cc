#include "core/sharing/room_value.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/sharing/room_value_table.h"

namespace berth {

RoomValue::RoomValue(std::vector<ValuedRequest> requests) : requests_(std::move(requests)) {}
RoomValue::RoomValue(RoomValue&&) noexcept = default;
RoomValue& RoomValue::operator=(RoomValue&&) noexcept = default;
RoomValue::~RoomValue() = default;

RoomValue::Table& RoomValue::TableFor(int32_t model) {
  const int32_t index = model + 1;  // starting at model -1
  Table*& known = by_model_.at(static_cast<size_t>(index));
  if (known != nullptr) return *known;
  std::vector<size_t> suits;
  for (size_t i = 0; i < requests_.size(); ++i) {
    const auto& [request, value] = requests_[i];
    if (value > 0 && request.amount() > 0 && request.AllowsModel(model)) suits.push_back(i);
  }
  auto it = std::find_if(tables_.begin(), tables_.end(),
                         [&](const auto& table) { return table.first == suits; });
  if (it == tables_.end()) {
    it = tables_.emplace(it, suits, std::make_unique<Table>(requests_, suits));
  }
  known = it->second.get();
  return *known;
}

int64_t RoomValue::Of(const NodeRoom& room) { return TableFor(room.model).Of(room); }

std::vector<size_t> RoomValue::Best(const NodeRoom& room) {
  std::vector<size_t> placed = TableFor(room.model).Best(room);
  std::sort(placed.begin(), placed.end());
  return placed;
}

}  // namespace berth
