// Messages as JSON in protobuf's mapping (json names, enum names, RFC 3339 times, base64 bytes),
// with three differences. The output is deterministic: maps are sorted by key. 64-bit integers are
// numbers up to 2^53, which every JSON reader holds exactly, and strings above. Numbers that are
// meaningful at 0 are written (support/shown_fields.h).
#ifndef BERTH_SUPPORT_PROTO_JSON_H_
#define BERTH_SUPPORT_PROTO_JSON_H_

#include <string>

namespace google::protobuf {
class Message;
}

namespace berth {

struct JsonStyle {
  bool indented = false;  // else on one line
  bool zeros = false;     // also write numbers, strings and lists that are 0 or empty
};
// Without a final newline. For generated messages without Any.
std::string WriteJson(const google::protobuf::Message& message, JsonStyle style = {});

}  // namespace berth

#endif  // BERTH_SUPPORT_PROTO_JSON_H_
