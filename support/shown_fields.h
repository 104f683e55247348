// Selects the fields of a message that are printed: those that are set, and numbers that are
// meaningful at 0.
//
// In API messages (package berth.v1) every number is printed, 0 too: rank 0, 0 free GPUs, 0
// retries. Two exceptions omit zeros: specs, where 0 means the default (but a priority of 0 is
// printed), and ChangeEvent, where 0 means "not about this". Fields with presence (optional, or in
// a oneof) are printed if they are set, whatever their value.
#ifndef BERTH_SUPPORT_SHOWN_FIELDS_H_
#define BERTH_SUPPORT_SHOWN_FIELDS_H_

#include <vector>

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace berth {

// True if messages in a field of `type` belong to a spec. Everything inside a spec does.
bool IsSpec(const google::protobuf::Descriptor* type);

// Ordered by field number. `in_spec`: the message is a spec or inside one.
std::vector<const google::protobuf::FieldDescriptor*> ShownFields(
    const google::protobuf::Message& message, bool in_spec);

}  // namespace berth

#endif  // BERTH_SUPPORT_SHOWN_FIELDS_H_
