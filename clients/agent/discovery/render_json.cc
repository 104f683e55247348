#include <utf8.h>

#include <iterator>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/agent/discovery/fields.h"
#include "clients/agent/discovery/names.h"
#include "clients/agent/discovery/render.h"

namespace berth::discovery {
namespace {

// Bytes that are not UTF-8 become "?".
std::string Quoted(absl::string_view text) {
  std::string out = "\"", valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid), '?');
  for (const char c : valid) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      absl::StrAppend(&out, c == '"' || c == '\\' ? "\\" : "", absl::string_view(&c, 1));
    }
  }
  return out + "\"";
}

class JsonWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    absl::StrAppend(&out, first_ ? "" : ",", NewLine(), Quoted(name), ": ");
    first_ = false;
    Put(value);
  }
  template <class T>
  void Object(const T& value) {
    out += "{";
    first_ = true;
    depth_ += 2;
    Fields(*this, value);
    depth_ -= 2;
    absl::StrAppend(&out, NewLine(), "}");
    first_ = false;
  }
  std::string out;

 private:
  template <class T>
  void Put(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      out += value ? "true" : "false";
    } else if constexpr (std::is_enum_v<T>) {
      out += Quoted(Name(value));
    } else if constexpr (std::is_integral_v<T>) {
      absl::StrAppend(&out, value);
    } else {
      Object(value);
    }
  }
  void Put(const std::string& value) { out += Quoted(value); }
  void Put(const PciAddress& value) { out += Quoted(ToString(value)); }
  template <class T>
  void Put(const std::vector<T>& values) {
    out += "[";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ", ";
      Put(values[i]);
    }
    out += "]";
  }
  std::string NewLine() const { return absl::StrCat("\n", std::string(depth_, ' ')); }

  size_t depth_ = 0;
  bool first_ = true;
};

}  // namespace

std::string RenderJson(const Machine& machine) {
  JsonWriter writer;
  writer.Object(machine);
  return writer.out + "\n";
}

}  // namespace berth::discovery
