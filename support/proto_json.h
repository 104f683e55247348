// Messages as JSON, the same text for the same message: protobuf's own writer leaves the order of
// maps to chance.
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
// Without a newline at its end. Of generated messages without Any, which cannot fail.
std::string WriteJson(const google::protobuf::Message& message, JsonStyle style = {});

}  // namespace berth

#endif  // BERTH_SUPPORT_PROTO_JSON_H_
