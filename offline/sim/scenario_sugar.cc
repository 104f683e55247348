#include "offline/sim/scenario_sugar.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr std::array<absl::string_view, 12> kNameSteps = {
    "nodeDown", "nodeLost",   "nodeUp", "nodeReboot", "cordon", "uncordon",
    "drain",    "nodeDelete", "cancel", "suspend",    "resume", "delete"};
constexpr std::array<absl::string_view, 6> kTaskSteps = {"finish",  "fail",   "prepared",
                                                         "running", "refuse", "gone"};

YamlNode Scalar(std::string text, YamlPosition position) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.position = position;
  node.text = std::move(text);
  return node;
}

YamlNode MapOf(absl::string_view key, YamlNode value) {
  YamlNode map;
  map.kind = YamlNode::Kind::kMap;
  map.position = value.position;
  map.keys.push_back(Scalar(std::string(key), value.position));
  map.items.push_back(std::move(value));
  return map;
}

YamlNode ListOf(YamlNode value) {
  YamlNode list;
  list.kind = YamlNode::Kind::kList;
  list.position = value.position;
  list.items.push_back(std::move(value));
  return list;
}

YamlNode* Find(YamlNode* map, absl::string_view key) {
  if (!map->is_map()) return nullptr;
  for (size_t i = 0; i < map->keys.size(); ++i) {
    if (map->keys[i].text == key) return &map->items[i];
  }
  return nullptr;
}

// "Running" -> {key: Running}
void ScalarMeans(absl::string_view key, YamlNode* node) {
  if (node != nullptr && node->is_scalar()) *node = MapOf(key, std::move(*node));
}

// "Running n0" -> {state: Running, node: n0}
void ExpandTask(YamlNode* node) {
  if (!node->is_scalar()) return;
  const std::pair<std::string, std::string> words =
      absl::StrSplit(node->text, absl::MaxSplits(' ', 1));
  const YamlPosition position = node->position;
  *node = MapOf("state", Scalar(words.first, position));
  if (words.second.empty()) return;
  node->keys.push_back(Scalar("node", position));
  node->items.push_back(Scalar(words.second, position));
}

void ExpandExpectation(YamlNode* expect) {
  if (expect == nullptr) return;
  YamlNode* jobs = Find(expect, "jobs");
  if (jobs != nullptr && jobs->is_map()) {
    for (YamlNode& job : jobs->items) {
      ScalarMeans("state", &job);
      ScalarMeans("code", Find(&job, "reason"));
      YamlNode* tasks = Find(&job, "tasks");
      if (tasks == nullptr || !tasks->is_map()) continue;
      for (YamlNode& task : tasks->items) ExpandTask(&task);
    }
  }
  YamlNode* nodes = Find(expect, "nodes");
  if (nodes == nullptr || !nodes->is_map()) return;
  for (YamlNode& node : nodes->items) ScalarMeans("state", &node);
}

// "j1/worker-0" -> {job: j1, tasks: [worker-0]}
void ExpandTasks(YamlNode* node) {
  if (!node->is_scalar()) return;
  const YamlPosition position = node->position;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(node->text, absl::MaxSplits('/', 1));
  *node = MapOf("job", Scalar(parts.first, position));
  if (parts.second.empty()) return;
  node->keys.push_back(Scalar("tasks", position));
  node->items.push_back(Scalar(parts.second, position));
}

void ExpandSubmit(YamlNode* node) {
  if (node->is_map() && Find(node, "jobs") == nullptr) *node = ListOf(std::move(*node));
  if (node->is_list()) *node = MapOf("jobs", std::move(*node));
}

void ExpandStep(YamlNode* step, YamlErrors* errors);

// {submit: ..., because: TEXT} -> {step: {submit: ...}, because: TEXT}
void ExpandRefused(YamlNode* node, YamlErrors* errors) {
  if (!node->is_map() || Find(node, "step") != nullptr) return;
  YamlNode refused;
  refused.kind = YamlNode::Kind::kMap;
  refused.position = node->position;
  for (size_t i = 0; i < node->keys.size(); ++i) {
    const bool because = node->keys[i].text == "because";
    YamlNode key = because ? node->keys[i] : Scalar("step", node->keys[i].position);
    YamlNode value =
        because ? std::move(node->items[i]) : MapOf(node->keys[i].text, std::move(node->items[i]));
    if (!because) ExpandStep(&value, errors);
    refused.keys.push_back(std::move(key));
    refused.items.push_back(std::move(value));
  }
  *node = std::move(refused);
}

// "cycle" and "advance 10s" are steps too.
void ExpandWords(YamlNode* step) {
  if (!step->is_scalar()) return;
  const std::pair<std::string, std::string> words =
      absl::StrSplit(step->text, absl::MaxSplits(' ', 1));
  YamlNode value = Scalar(words.second, step->position);
  if (words.second.empty()) value.kind = YamlNode::Kind::kNull;
  *step = MapOf(words.first, std::move(value));
}

void ExpandStep(YamlNode* step, YamlErrors* errors) {
  ExpandWords(step);
  if (!step->is_map()) return;
  for (size_t i = 0; i < step->keys.size(); ++i) {
    const std::string& key = step->keys[i].text;
    YamlNode* value = &step->items[i];
    if (value->is_null() && key == "cycle") *value = Scalar("1", step->keys[i].position);
    if (value->is_null() && key == "settle") *value = Scalar("100", step->keys[i].position);
    if (absl::c_linear_search(kNameSteps, key) && (value->is_scalar() || value->is_list())) {
      *value = MapOf("names", std::move(*value));
    }
    if (absl::c_linear_search(kTaskSteps, key)) ExpandTasks(value);
    if (key == "submit") ExpandSubmit(value);
    if (key == "expect") ExpandExpectation(value);
    if (key == "refused") ExpandRefused(value, errors);
  }
}

}  // namespace

void ExpandShorthands(YamlNode* document, YamlErrors* errors) {
  if (!document->is_map()) return;
  ExpandExpectation(Find(document, "expect"));
  YamlNode* steps = Find(document, "steps");
  if (steps == nullptr) return;
  if (steps->is_scalar()) *steps = ListOf(std::move(*steps));
  if (!steps->is_list()) return;
  for (YamlNode& step : steps->items) {
    if (step.is_null()) {
      errors->Add(step.position, "steps: an empty step");
      continue;
    }
    ExpandStep(&step, errors);
  }
}

}  // namespace berth
