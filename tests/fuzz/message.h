// Messages from the bytes of a fuzzer: text that people can read and write, followed by binary
// edits for the fuzzer.
#ifndef BERTH_TESTS_FUZZ_MESSAGE_H_
#define BERTH_TESTS_FUZZ_MESSAGE_H_

#include <google/protobuf/message.h>

#include "absl/strings/string_view.h"

namespace berth::fuzz {

// `body` is protobuf text, followed after a NUL byte by edits of six bytes each. If the text does
// not parse, the part before the error counts. An edit walks from field to field as its bytes say,
// and sets the field at the end: to a value from a small list (names that exist, limits of types),
// or to one more element. So a mutated byte results in a changed request, not in one that every
// parser rejects.
//
// The result is the message as a server would see it: without unknown fields and without strings
// that are not UTF-8.
void ReadMessage(absl::string_view body, google::protobuf::Message* message);

}  // namespace berth::fuzz

#endif  // BERTH_TESTS_FUZZ_MESSAGE_H_
