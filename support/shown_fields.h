// Which fields of a message are printed: those that are set, and numbers that say something at 0.
//
// In the API's messages (package berth.v1) every number is printed, 0 too: rank 0, 0 free GPUs, 0
// retries. Left out at 0 are numbers in specs, where 0 stands for the default (a priority of 0 is
// printed), and in ChangeEvent, where 0 stands for "not about this". Fields with presence (optional
// ones, members of a oneof) are printed if they are set, whatever their value.
#ifndef BERTH_SUPPORT_SHOWN_FIELDS_H_
#define BERTH_SUPPORT_SHOWN_FIELDS_H_

#include <vector>

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace berth {

// Whether messages inside a field of `type` are those of a spec. Once inside, always inside.
bool IsSpec(const google::protobuf::Descriptor* type);

// In the order of their numbers. `in_spec`: the message is a spec or inside one.
std::vector<const google::protobuf::FieldDescriptor*> ShownFields(
    const google::protobuf::Message& message, bool in_spec);

}  // namespace berth

#endif  // BERTH_SUPPORT_SHOWN_FIELDS_H_
