#include "clients/authd_client/ask.h"

#include <google/protobuf/util/json_util.h>

namespace berth {

bool ParseJson(const std::string& text, google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(text, message, options).ok();
}

}  // namespace berth
