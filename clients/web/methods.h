// The calls of berthd that berth-web passes on: a list by name. What is not on it does not exist
// here. Requests and answers are converted by their descriptors, so no call has code of its own.
#ifndef BERTH_CLIENTS_WEB_METHODS_H_
#define BERTH_CLIENTS_WEB_METHODS_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth::web {

// Of "/berth.v1.JobService/GetJob". UNIMPLEMENTED, naming it, if it is not passed on; NOT_FOUND if
// the API has no such method.
absl::StatusOr<const google::protobuf::MethodDescriptor*> MethodOf(absl::string_view path);

// Whether it changes nothing, and all who ask at one time may share the answer.
bool IsRead(const google::protobuf::MethodDescriptor& method);

// "JobService.GetJob", sorted.
std::vector<std::string> PassedMethods();

// The request as bytes for the wire. INVALID_ARGUMENT, naming the field.
absl::StatusOr<std::string> RequestFromJson(const google::protobuf::MethodDescriptor& method,
                                            const std::string& json);
// The answer as JSON. INTERNAL: these are not its bytes.
absl::StatusOr<std::string> AnswerToJson(const google::protobuf::MethodDescriptor& method,
                                         const std::string& bytes);

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_METHODS_H_
