#include "clients/agent/discovery/xml_reader.h"

#include <expat.h>

#include <algorithm>
#include <array>
#include <memory>

#include "absl/strings/str_cat.h"

namespace berth::discovery {
namespace {

constexpr absl::string_view kCommentBegin = "<!--";
constexpr absl::string_view kCommentEnd = "-->";

// DEL, controls below U+0020, and those from U+0080 to U+009F, which are two bytes.
bool IsControl(absl::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const bool upper = byte == 0xc2 && at + 1 < text.size() && (text[at + 1] & 0xe0) == 0x80;
  return byte < 0x20 || byte == 0x7f || upper;
}

// The offset of the first control character that is not a tab or the end of a line. Names are shown
// in messages and on terminals; XML itself forbids only some of these characters.
size_t FirstControl(absl::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    const bool line_end = text[at] == '\r' && text.substr(at + 1, 1) == "\n";
    const bool blank = text[at] == '\n' || text[at] == '\t' || line_end;
    if (!blank && IsControl(text, at)) return at;
  }
  return absl::string_view::npos;
}

// A value may contain controls that were written as references ("&#10;").
std::string WithoutControls(std::string value) {
  for (size_t at = 0; at < value.size(); ++at) {
    if (!IsControl(value, at)) continue;
    const size_t bytes = static_cast<unsigned char>(value[at]) == 0xc2 ? 2 : 1;
    value.replace(at, bytes, "?");
  }
  return value;
}

// Every reference in the tag is to a character or to an entity that XML predefines. Expat drops
// undefined ones without an error if the document names an external document type.
bool AllDefined(absl::string_view tag) {
  constexpr std::array<absl::string_view, 5> kPredefined = {"lt", "gt", "amp", "quot", "apos"};
  for (size_t at = 0; (at = tag.find('&', at)) != absl::string_view::npos; ++at) {
    const absl::string_view name = tag.substr(at + 1, tag.find(';', at) - at - 1);
    const bool known = std::find(kPredefined.begin(), kPredefined.end(), name) != kPredefined.end();
    if (!known && name.substr(0, 1) != "#") return false;
  }
  return true;
}

absl::Status ErrorAt(uint64_t line, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", reason));
}

struct FreeParser {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

class ElementReader {
 public:
  // The encoding overrides what the document declares, so that hwloc reads the same characters.
  explicit ElementReader(absl::string_view text) : text_(text), parser_(XML_ParserCreate("UTF-8")) {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), &OnStart, &OnEnd);
    XML_SetStartDoctypeDeclHandler(parser_.get(), &OnDoctype);
    XML_SetSkippedEntityHandler(parser_.get(), &OnSkippedEntity);
  }

  absl::StatusOr<XmlDocument> Read() {
    const auto bytes = static_cast<int>(text_.size());
    if (XML_Parse(parser_.get(), text_.data(), bytes, XML_TRUE) == XML_STATUS_OK) {
      return std::move(document_);
    }
    const XML_Error error = XML_GetErrorCode(parser_.get());
    if (refusal_.empty() && error == XML_ERROR_NO_ELEMENTS && open_ >= 0) {
      refusal_ = absl::StrCat("the file ends inside <", Open().name, ">");
    }
    return ErrorAt(XML_GetCurrentLineNumber(parser_.get()),
                   refusal_.empty() ? XML_ErrorString(error) : refusal_);
  }

 private:
  static void OnStart(void* reader, const char* name, const char** attributes) {
    static_cast<ElementReader*>(reader)->Start(name, attributes);
  }
  static void OnEnd(void* reader, const char*) { static_cast<ElementReader*>(reader)->End(); }
  static void OnDoctype(void* reader, const char*, const char*, const char*, int internal) {
    if (internal == 0) return;  // only names an external one, which is not read
    static_cast<ElementReader*>(reader)->Refuse(
        "a document type with declarations is not supported");
  }
  static void OnSkippedEntity(void* reader, const char*, int) {
    static_cast<ElementReader*>(reader)->Refuse("an undefined entity");
  }

  XmlElement& Open() { return document_.elements[static_cast<size_t>(open_)]; }

  // Expat may still report the end of an element after this.
  void Refuse(absl::string_view reason) {
    if (refusal_.empty()) refusal_ = std::string(reason);
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  void Start(const char* name, const char** attributes) {
    if (document_.elements.size() >= kMaxXmlElements) return Refuse("too many elements");
    if (depth_ >= kMaxXmlDepth) return Refuse("elements nested too deeply");
    const auto begin = static_cast<size_t>(XML_GetCurrentByteIndex(parser_.get()));
    const auto bytes = static_cast<size_t>(XML_GetCurrentByteCount(parser_.get()));
    if (!AllDefined(text_.substr(begin, bytes))) return Refuse("an undefined entity");
    if (document_.elements.empty()) document_.root_begin = begin;
    XmlElement element{.name = name, .parent = open_};
    element.line = static_cast<int>(XML_GetCurrentLineNumber(parser_.get()));
    for (; *attributes != nullptr; attributes += 2) {
      if (element.attributes.size() >= kMaxXmlAttributes) return Refuse("too many attributes");
      element.attributes.emplace_back(attributes[0], WithoutControls(attributes[1]));
    }
    open_ = static_cast<int32_t>(document_.elements.size());
    document_.elements.push_back(std::move(element));
    ++depth_;
  }

  void End() {
    if (!refusal_.empty()) return;
    open_ = Open().parent;
    --depth_;
  }

  const absl::string_view text_;
  const std::unique_ptr<XML_ParserStruct, FreeParser> parser_;
  XmlDocument document_;
  int32_t open_ = -1;
  int depth_ = 0;
  std::string refusal_;
};

}  // namespace

const std::string& XmlElement::Get(absl::string_view attribute) const {
  static const std::string* const kEmpty = new std::string;
  for (const auto& [name, value] : attributes) {
    if (name == attribute) return value;
  }
  return *kEmpty;
}

absl::StatusOr<XmlDocument> ParseXml(absl::string_view text) {
  if (text.size() > kMaxXmlBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(text.size(), " bytes; at most ", kMaxXmlBytes, " are read"));
  if (const size_t control = FirstControl(text); control != absl::string_view::npos) {
    const auto lines = std::count(text.begin(), text.begin() + control, '\n');
    return ErrorAt(static_cast<uint64_t>(lines) + 1, "a control character");
  }
  return ElementReader(text).Read();
}

std::string WithoutComments(absl::string_view text) {
  std::string out;
  while (true) {
    const size_t begin = text.find(kCommentBegin);
    out.append(text.data(), std::min(begin, text.size()));
    if (begin == absl::string_view::npos) return out;
    const size_t end = text.find(kCommentEnd, begin);
    if (end == absl::string_view::npos) return out;
    out.push_back(' ');
    text.remove_prefix(end + kCommentEnd.size());
  }
}

}  // namespace berth::discovery
