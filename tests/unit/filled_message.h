// Answers with something in every field.
#ifndef BERTH_TESTS_UNIT_FILLED_MESSAGE_H_
#define BERTH_TESTS_UNIT_FILLED_MESSAGE_H_

#include <string>

#include "google/protobuf/message.h"

namespace berth {

inline void FillMessage(google::protobuf::Message* message, const std::string& text, int depth);

inline void FillField(google::protobuf::Message* message,
                      const google::protobuf::FieldDescriptor* field, const std::string& text,
                      int depth) {
  using google::protobuf::FieldDescriptor;
  const auto* r = message->GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (field->type() == FieldDescriptor::TYPE_BYTES) return;
      // A list that never ends, and a queue that is its own parent, would show nothing.
      if (field->name() == "next_page_token" || field->name() == "parent") return;
      return many ? r->AddString(message, field, text) : r->SetString(message, field, text);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (depth == 0) return;
      return FillMessage(many ? r->AddMessage(message, field) : r->MutableMessage(message, field),
                         text, depth - 1);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* value = field->enum_type()->value(field->enum_type()->value_count() - 1);
      return many ? r->AddEnum(message, field, value) : r->SetEnum(message, field, value);
    }
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? r->AddInt32(message, field, 1) : r->SetInt32(message, field, 1);
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? r->AddInt64(message, field, 1) : r->SetInt64(message, field, 1);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return many ? r->AddDouble(message, field, 1) : r->SetDouble(message, field, 1);
    default:
      return;  // booleans and numbers that are in no text
  }
}

// Every field of every message inside, down to `depth`; of a oneof the last.
inline void FillMessage(google::protobuf::Message* message, const std::string& text, int depth) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    FillField(message, message->GetDescriptor()->field(i), text, depth);
  }
}

// ESC, BEL, CSI as C1, a new line with a lie, right-to-left override, isolate, a paragraph.
inline constexpr char kNasty[] =
    "x\x1b[2J\x07\xc2\x9b"
    "31m\nFORGED\r\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa9";

// Whether nothing of kNasty is in the text as it is.
inline bool IsHarmless(const std::string& text) {
  for (const char* bad : {"\x1b", "\x07", "\r", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6",
                          "\xe2\x80\xa9", "\nFORGED"}) {
    if (text.find(bad) != std::string::npos) return false;
  }
  return true;
}

template <class Answer>
Answer FilledWith(const std::string& text) {
  constexpr int kDepth = 7;
  Answer answer;
  FillMessage(&answer, text, kDepth);
  return answer;
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_FILLED_MESSAGE_H_
