#include "clients/agent/discovery/xml_reader.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace berth::discovery {
namespace {

constexpr absl::string_view kCommentBegin = "<!--";
constexpr absl::string_view kCommentEnd = "-->";
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
         c == ':';
}

// The character of an entity, or nothing if XML does not predefine it.
absl::string_view Predefined(absl::string_view name) {
  constexpr std::array<std::pair<absl::string_view, absl::string_view>, 5> kNames = {
      {{"lt", "<"}, {"gt", ">"}, {"amp", "&"}, {"quot", "\""}, {"apos", "'"}}};
  for (const auto& [known, value] : kNames) {
    if (known == name) return value;
  }
  return "";
}

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<XmlDocument> Run() {
    if (text_.find('\0') != absl::string_view::npos) return Error("a NUL byte");
    if (absl::StartsWith(text_, kByteOrderMark)) at_ = kByteOrderMark.size();
    if (absl::Status status = RefuseControls(); !status.ok()) return status;
    while (at_ < text_.size()) {
      if (absl::Status status = Step(); !status.ok()) return status;
    }
    if (document_.elements.empty()) return Error("no element");
    if (open_ >= 0) return Error(absl::StrCat("the file ends inside <", Open().name, ">"));
    return std::move(document_);
  }

 private:
  int Line() {
    while (counted_ < at_ && counted_ < text_.size()) line_ += text_[counted_++] == '\n';
    return line_;
  }
  absl::Status Error(absl::string_view reason) {
    return absl::InvalidArgumentError(absl::StrCat("line ", Line(), ": ", reason));
  }
  // XML forbids or discourages control characters; names are shown in messages and on terminals.
  absl::Status RefuseControls() {
    for (size_t i = at_; i < text_.size(); ++i) {
      const auto c = static_cast<unsigned char>(text_[i]);
      const bool upper = c == 0xc2 && i + 1 < text_.size() && (text_[i + 1] & 0xe0) == 0x80;
      const bool line_end = c == '\r' && i + 1 < text_.size() && text_[i + 1] == '\n';
      const bool blank = c == '\n' || c == '\t' || line_end;
      if (c == 0x7f || (c < 0x20 && !blank) || upper) {
        at_ = i;
        return Error("a control character");
      }
    }
    return absl::OkStatus();
  }
  absl::string_view Rest() const { return text_.substr(at_); }
  XmlElement& Open() { return document_.elements[static_cast<size_t>(open_)]; }

  absl::Status Step() {
    if (text_[at_] != '<') return Text();
    if (absl::StartsWith(Rest(), kCommentBegin)) return SkipPast(kCommentEnd, "a comment");
    if (absl::StartsWith(Rest(), "<?")) return SkipPast("?>", "a processing instruction");
    if (absl::StartsWith(Rest(), "<!DOCTYPE")) return Doctype();
    if (absl::StartsWith(Rest(), "<!")) return Error("an unsupported section or declaration");
    if (absl::StartsWith(Rest(), "</")) return EndTag();
    return StartTag();
  }

  absl::Status Text() {
    const size_t end = std::min(text_.find('<', at_), text_.size());
    const absl::string_view text = text_.substr(at_, end - at_);
    if (open_ < 0 && !absl::StripAsciiWhitespace(text).empty())
      return Error("text outside of the root element");
    at_ = end;
    return absl::OkStatus();
  }

  absl::Status SkipPast(absl::string_view end, absl::string_view what) {
    const size_t found = text_.find(end, at_);
    if (found == absl::string_view::npos) return Error(absl::StrCat(what, " is not closed"));
    at_ = found + end.size();
    return absl::OkStatus();
  }

  // Accepts <!DOCTYPE name SYSTEM "file"> only: no internal declarations; the file is not read.
  absl::Status Doctype() {
    const size_t end = text_.find('>', at_);
    if (end == absl::string_view::npos) return Error("a document type is not closed");
    if (text_.substr(at_, end - at_).find('[') != absl::string_view::npos)
      return Error("a document type with declarations is not supported");
    at_ = end + 1;
    return absl::OkStatus();
  }

  std::string ReadName() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameChar(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  void SkipBlanks() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Take(absl::string_view token) {
    if (!absl::StartsWith(Rest(), token)) return false;
    at_ += token.size();
    return true;
  }

  absl::Status EndTag() {
    at_ += 2;
    const std::string name = ReadName();
    SkipBlanks();
    if (!Take(">")) return Error("an end tag is not closed");
    if (open_ < 0 || Open().name != name)
      return Error(absl::StrCat("</", name, "> does not match an open element"));
    open_ = Open().parent;
    --depth_;
    return absl::OkStatus();
  }

  absl::Status StartTag() {
    const size_t begin = at_++;
    XmlElement element{.name = ReadName(), .parent = open_};
    if (element.name.empty()) return Error("a tag without a name");
    if (open_ < 0 && !document_.elements.empty()) return Error("a second root element");
    if (document_.elements.size() >= kMaxXmlElements) return Error("too many elements");
    if (depth_ >= kMaxXmlDepth) return Error("elements nested too deeply");
    if (absl::Status status = Attributes(&element); !status.ok()) return status;
    element.line = Line();
    if (document_.elements.empty()) document_.root_begin = begin;
    const bool empty = Take("/");
    if (!Take(">")) return Error("a tag is not closed");
    document_.elements.push_back(std::move(element));
    if (empty) return absl::OkStatus();
    open_ = static_cast<int32_t>(document_.elements.size()) - 1;
    ++depth_;
    return absl::OkStatus();
  }

  absl::Status Attributes(XmlElement* element) {
    while (true) {
      SkipBlanks();
      if (at_ >= text_.size()) return Error("the file ends inside a tag");
      if (text_[at_] == '>' || text_[at_] == '/') return absl::OkStatus();
      if (element->attributes.size() >= kMaxXmlAttributes) return Error("too many attributes");
      std::string name = ReadName();
      SkipBlanks();
      if (name.empty() || !Take("=")) return Error("an attribute without a name or a value");
      SkipBlanks();
      std::string value;
      if (absl::Status status = Value(&value); !status.ok()) return status;
      if (element->Get(name).empty()) element->attributes.emplace_back(name, std::move(value));
    }
  }

  absl::Status Value(std::string* value) {
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '"' && quote != '\'') return Error("an attribute value without quotes");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == absl::string_view::npos) return Error("the file ends inside an attribute");
    const absl::string_view raw = text_.substr(at_ + 1, end - at_ - 1);
    if (raw.find('<') != absl::string_view::npos) return Error("'<' inside an attribute");
    if (!Unescape(raw, value)) return Error("an undefined entity");
    at_ = end + 1;
    return absl::OkStatus();
  }

  static bool Unescape(absl::string_view raw, std::string* out) {
    for (size_t at = 0; at < raw.size();) {
      if (raw[at] != '&') {
        out->push_back(raw[at++]);
        continue;
      }
      const size_t end = raw.find(';', at);
      if (end == absl::string_view::npos) return false;
      if (!AppendReference(raw.substr(at + 1, end - at - 1), out)) return false;
      at = end + 1;
    }
    return true;
  }

  // Characters beyond ASCII become "?": no name that matters here has them.
  static bool AppendReference(absl::string_view name, std::string* out) {
    uint32_t code = 0;
    if (absl::ConsumePrefix(&name, "#x")
            ? absl::SimpleHexAtoi(name, &code)
            : absl::ConsumePrefix(&name, "#") && absl::SimpleAtoi(name, &code)) {
      out->push_back(code >= 0x20 && code < 0x7f ? static_cast<char>(code) : '?');
      return code != 0;
    }
    const absl::string_view value = Predefined(name);
    absl::StrAppend(out, value);
    return !value.empty();
  }

  absl::string_view text_;
  size_t at_ = 0;
  size_t counted_ = 0;  // lines up to here are in line_
  int line_ = 1;
  XmlDocument document_;
  int32_t open_ = -1;
  int depth_ = 0;
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
  return Parser(text).Run();
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
