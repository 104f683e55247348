// Messages as JSON: protobuf's mapping (json names, enum names, RFC 3339 times, base64 bytes), but
// for three things. The same message always gives the same text: maps are written in the order of
// their keys. 64-bit integers are numbers up to 2^53, which every reader of JSON holds exactly, and
// strings above it. Numbers that say something at 0 are written (support/shown_fields.h).
#ifndef BERTH_SUPPORT_PROTO_JSON_H_
#define BERTH_SUPPORT_PROTO_JSON_H_

#include <string>

namespace google::protobuf {
class Message;
}

namespace berth {

struct JsonStyle {
  bool indented = false;  // else one line
  bool zeros = false;     // also numbers, words and lists that are 0 or empty
};
// Without a newline at its end. Of generated messages without Any.
std::string WriteJson(const google::protobuf::Message& message, JsonStyle style = {});

}  // namespace berth

#endif  // BERTH_SUPPORT_PROTO_JSON_H_
