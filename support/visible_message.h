// Visible() for a whole message.
#ifndef BERTH_SUPPORT_VISIBLE_MESSAGE_H_
#define BERTH_SUPPORT_VISIBLE_MESSAGE_H_

#include "google/protobuf/message.h"

namespace berth {

// Applies to every `string`, including map keys and nested messages; `bytes` stay unchanged.
void MakeVisible(google::protobuf::Message* message);

template <class Message>
Message VisibleCopy(Message message) {
  MakeVisible(&message);
  return message;
}

}  // namespace berth

#endif  // BERTH_SUPPORT_VISIBLE_MESSAGE_H_
