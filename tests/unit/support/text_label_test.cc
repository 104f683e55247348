#include "support/text_label.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

namespace berth {
namespace {

std::string Back(const std::map<std::string, std::string>& labels, const std::string& key) {
  return TextInLabels(key, [&](const std::string& label) {
    const auto found = labels.find(label);
    return found == labels.end() ? nullptr : &found->second;
  });
}

TEST_CASE("text labels: any text comes back, plain ones as they are") {
  for (const std::string& text :
       {std::string("physics"), std::string("a b/c"), std::string("e.fake"), std::string("-x"),
        std::string("\0\1\xff", 3), std::string(200, '.'), std::string(63, 'a'),
        std::string(64, 'a')}) {
    std::map<std::string, std::string> labels;
    for (const auto& [key, value] : TextLabels("slurm/account", text)) {
      CHECK(value.size() <= 63);
      labels[key] = value;
    }
    CHECK(Back(labels, "slurm/account") == text);
  }
  CHECK(TextLabels("k", "physics-1").front().second == "physics-1");
  CHECK(TextLabels("k", "").empty());
  CHECK(Back({}, "k").empty());
}

}  // namespace
}  // namespace berth
