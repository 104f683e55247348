// Internal to oidc: owners of Jansson's objects, and strict parsing.
#ifndef BERTH_CLIENTS_AUTHD_OIDC_JSON_H_
#define BERTH_CLIENTS_AUTHD_OIDC_JSON_H_

#include <jansson.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace berth::oidc {

struct JsonFreer {
  void operator()(json_t* value) const { json_decref(value); }
};
using OwnedJson = std::unique_ptr<json_t, JsonFreer>;

// An object in UTF-8 without repeated keys and NUL characters; null for anything else.
inline OwnedJson ParseJsonObject(absl::string_view text) {
  OwnedJson value(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, nullptr));
  return json_is_object(value.get()) ? std::move(value) : nullptr;
}

// nullopt: not a text.
inline std::optional<std::string> TextOf(const json_t* value) {
  if (!json_is_string(value)) return std::nullopt;
  return std::string(json_string_value(value), json_string_length(value));
}
inline std::optional<std::string> TextAt(const json_t* object, const char* key) {
  return TextOf(json_object_get(object, key));
}

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_JSON_H_
