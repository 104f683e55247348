#include "offline/replay/places.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

namespace berth::replay {
namespace {

template <class Word>
std::string Words(const std::vector<TaskPlace>& places, Word&& word) {
  std::vector<std::string> words;
  for (const TaskPlace& place : places) {
    std::string text;
    if (place.any) text = word(place);
    words.push_back(text.empty() ? std::string("-") : std::move(text));
  }
  const auto is_known = [](const std::string& text) { return text != "-"; };
  return std::any_of(words.begin(), words.end(), is_known) ? absl::StrJoin(words, " ") : "";
}

}  // namespace

PlaceNames::PlaceNames(const ClusterState& state) {
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    if (nodes_.size() <= id.value) nodes_.resize(id.value + 1);
    nodes_[id.value].name = node.spec.name;
    for (const Device& device : node.spec.devices) {
      nodes_[id.value].devices.push_back(device.uuid);
    }
  });
}

std::string PlaceNames::Nodes(const std::vector<TaskPlace>& places) const {
  return Words(places, [&](const TaskPlace& place) { return nodes_[place.node.value].name; });
}

std::string PlaceNames::Devices(const std::vector<TaskPlace>& places) const {
  return Words(places, [&](const TaskPlace& place) {
    const std::vector<std::string>& all = nodes_[place.node.value].devices;
    std::vector<std::string> held;
    for (size_t i = 0; i < all.size(); ++i) {
      if (place.devices.Has(i)) held.push_back(all[i]);
    }
    return absl::StrJoin(held, "+");
  });
}

}  // namespace berth::replay
