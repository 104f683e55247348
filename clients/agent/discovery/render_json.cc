#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/agent/discovery/fields.h"
#include "clients/agent/discovery/names.h"
#include "clients/agent/discovery/render.h"

namespace berth::discovery {
namespace {

// Length of the UTF-8 sequence at `text[at]`, 0 if it is invalid.
size_t SequenceLength(absl::string_view text, size_t at) {
  const unsigned char lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t length = SequenceLength(text, at);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", text.substr(at, 1));
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      absl::StrAppend(&out, length == 0 ? "?" : text.substr(at, length));
    }
    at += std::max<size_t>(length, 1);
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
