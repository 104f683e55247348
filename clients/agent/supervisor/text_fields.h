// NUL-terminated "key=value" fields, the format of a supervisor's files.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_TEXT_FIELDS_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_TEXT_FIELDS_H_

#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace berth {

inline void PutField(std::string* out, std::string_view key, std::string_view value) {
  out->append(key).push_back('=');
  out->append(value).push_back('\0');
}
inline void PutField(std::string* out, std::string_view key, int64_t value) {
  PutField(out, key, std::to_string(value));
}

// 0 if it is not a number.
inline int64_t FieldNumber(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Calls `field` for each field; false if the text is truncated or malformed.
inline bool ForEachField(
    std::string_view text,
    const std::function<bool(std::string_view key, std::string_view value)>& field) {
  while (!text.empty()) {
    const size_t end = text.find('\0');
    const size_t equals = text.find('=');
    if (end == std::string_view::npos || equals == std::string_view::npos || equals > end)
      return false;
    if (!field(text.substr(0, equals), text.substr(equals + 1, end - equals - 1))) return false;
    text.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_TEXT_FIELDS_H_
