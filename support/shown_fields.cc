#include "support/shown_fields.h"

#include <algorithm>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace berth {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool IsNumber(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return true;
    default:
      return false;
  }
}

bool SaysSomethingAtZero(const FieldDescriptor* field, bool in_spec) {
  const Descriptor* type = field->containing_type();
  if (field->is_repeated() || field->has_presence() || !IsNumber(field)) return false;
  if (type->file()->package() != "berth.v1" || type->name() == "ChangeEvent") return false;
  return !in_spec || (IsSpec(type) && field->name() == "priority");
}

}  // namespace

bool IsSpec(const Descriptor* type) {
  const std::string& name = type->full_name();
  return name == "berth.v1.JobSpec" || name == "berth.v1.QueueSpec" ||
         name == "berth.v1.HyperNodeSpec";
}

std::vector<const FieldDescriptor*> ShownFields(const Message& message, bool in_spec) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  const Descriptor* type = message.GetDescriptor();
  const size_t set = fields.size();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (!SaysSomethingAtZero(field, in_spec)) continue;
    if (!message.GetReflection()->HasField(message, field)) fields.push_back(field);
  }
  if (fields.size() > set) {
    std::sort(fields.begin(), fields.end(),
              [](const auto* a, const auto* b) { return a->number() < b->number(); });
  }
  return fields;
}

}  // namespace berth
