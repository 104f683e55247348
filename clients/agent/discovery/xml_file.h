// Reads and checks topology files before any other code sees them.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_XML_FILE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_XML_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "clients/agent/discovery/xml_reader.h"

namespace berth::discovery {

enum class XmlKind { kHwloc, kNccl };

struct XmlFile {
  XmlKind kind = XmlKind::kHwloc;
  XmlDocument document{};
  std::string text{};  // as hwloc's parser needs it: no comments, with hwloc's header
};

// Accepts a regular file of at most kMaxXmlBytes, well formed, whose root is hwloc's <topology>
// (version 1 or 2) or NCCL's <system>. Every error begins with "PATH: " and gives the reason;
// NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT.
absl::StatusOr<XmlFile> ReadXmlFile(const std::string& path);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_XML_FILE_H_
