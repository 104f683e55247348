#include "support/visible_message.h"

#include <string>
#include <vector>

#include "support/visible.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void MakeStringVisible(Message* message, const FieldDescriptor* field) {
  const auto* r = message->GetReflection();
  std::string scratch;
  if (!field->is_repeated()) {
    const std::string& text = r->GetStringReference(*message, field, &scratch);
    if (FirstInvisible(text) != std::string::npos) r->SetString(message, field, Visible(text));
    return;
  }
  for (int i = 0; i < r->FieldSize(*message, field); ++i) {
    const std::string& text = r->GetRepeatedStringReference(*message, field, i, &scratch);
    if (FirstInvisible(text) == std::string::npos) continue;
    r->SetRepeatedString(message, field, i, Visible(text));
  }
}

}  // namespace

void MakeVisible(Message* message) {
  const auto* r = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) MakeStringVisible(message, field);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      MakeVisible(r->MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < r->FieldSize(*message, field); ++i) {
      MakeVisible(r->MutableRepeatedMessage(message, field, i));
    }
  }
}

}  // namespace berth
