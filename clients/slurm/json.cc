#include "clients/slurm/json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

std::string QuotedJson(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

Json::Json(const char* value) : text(QuotedJson(value)) {}
Json::Json(const std::string& value) : text(QuotedJson(value)) {}

Json JsonObject(std::initializer_list<JsonMember> members) {
  Json object(false);
  object.text = absl::StrCat("{",
                             absl::StrJoin(members, ", ",
                                           [](std::string* out, const JsonMember& member) {
                                             absl::StrAppend(out, QuotedJson(member.name), ": ",
                                                             member.value.text);
                                           }),
                             "}");
  return object;
}

Json JsonList(const std::vector<Json>& values) {
  Json list(false);
  list.text = absl::StrCat(
      "[",
      absl::StrJoin(values, ", ",
                    [](std::string* out, const Json& value) { absl::StrAppend(out, value.text); }),
      "]");
  return list;
}

Json SetNumber(int64_t number) {
  return JsonObject({{"set", true}, {"infinite", false}, {"number", number}});
}

Json UnsetNumber(bool infinite) {
  return JsonObject({{"set", false}, {"infinite", infinite}, {"number", 0}});
}

}  // namespace berth
