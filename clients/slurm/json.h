// Writes JSON.
#ifndef BERTH_CLIENTS_SLURM_JSON_H_
#define BERTH_CLIENTS_SLURM_JSON_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace berth {

// A value, as the text that it is written as.
struct Json {
  Json(bool value) : text(value ? "true" : "false") {}
  Json(int64_t value) : text(std::to_string(value)) {}
  Json(int value) : text(std::to_string(value)) {}
  Json(const char* value);
  Json(const std::string& value);

  std::string text;
};

struct JsonMember {
  absl::string_view name;
  Json value;
};
// In the order of its members.
Json JsonObject(std::initializer_list<JsonMember> members);
Json JsonList(const std::vector<Json>& values);

// Slurm's numbers that may be absent or unlimited: {"set": true, "infinite": false, "number": 5}.
Json SetNumber(int64_t number);
Json UnsetNumber(bool infinite = false);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JSON_H_
