// Elements and attributes of an XML document, read by Expat within limits: no entities of its own,
// nothing external, no control characters. Text between elements is skipped.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_XML_READER_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_XML_READER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth::discovery {

inline constexpr size_t kMaxXmlBytes = size_t{16} << 20;
inline constexpr size_t kMaxXmlElements = 500'000;
inline constexpr int kMaxXmlDepth = 64;
inline constexpr size_t kMaxXmlAttributes = 64;  // of one element

struct XmlElement {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> attributes{};
  int32_t parent = -1;  // index in the document's vector
  int line = 0;         // of its start tag

  // The attribute's value, or "".
  const std::string& Get(absl::string_view attribute) const;
};

// All elements in document order; the first is the root.
struct XmlDocument {
  std::vector<XmlElement> elements{};
  size_t root_begin = 0;  // offset of the root's "<" in the text
};

// INVALID_ARGUMENT "line N: reason" for text that is not well formed UTF-8 XML, is truncated or
// exceeds a limit.
absl::StatusOr<XmlDocument> ParseXml(absl::string_view text);

// The text with each comment replaced by one space. For a document that ParseXml accepts.
std::string WithoutComments(absl::string_view text);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_XML_READER_H_
