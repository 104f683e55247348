// Messages from the bytes of a fuzzer: text that people can read and write, then edits that it
// finds its way through.
#ifndef BERTH_TESTS_FUZZ_MESSAGE_H_
#define BERTH_TESTS_FUZZ_MESSAGE_H_

#include <google/protobuf/message.h>

#include "absl/strings/string_view.h"

namespace berth::fuzz {

// `body` is protobuf text, and after a NUL byte edits of six bytes each. Of text that does not
// parse what came before the error counts. An edit walks from field to field, wherever its bytes
// lead, and sets what it comes to: to a value of a small list (names that exist, numbers at the
// edges of types), or to one more element. So a mutated byte is a changed request, and not one that
// no parser takes.
//
// The result is what came over the wire, as a server would see it: without unknown fields or
// strings that are not UTF-8.
void ReadMessage(absl::string_view body, google::protobuf::Message* message);

}  // namespace berth::fuzz

#endif  // BERTH_TESTS_FUZZ_MESSAGE_H_
