// Priority classes: the record, and the change in an event.
#include "core/base/fields.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<PriorityClass> == 5);
static_assert(kFields<PriorityClassChange> == 2);

void SetPriorityClasses(const PriorityClassChange& change, pb::PriorityClassChange* out) {
  for (const std::string& name : change.remove) out->add_remove(name);
  for (const PriorityClass& one : change.set) {
    pb::PriorityClass* m = out->add_set();
    m->set_name(one.name);
    m->set_value(one.value);
    m->set_never_preempts(!one.preempts);
    m->set_global_default(one.global_default);
    m->set_description(one.description);
  }
}

PriorityClassChange GetPriorityClasses(const pb::PriorityClassChange& message) {
  PriorityClassChange change{.remove = {message.remove().begin(), message.remove().end()},
                             .set = {}};
  for (const pb::PriorityClass& m : message.set()) {
    change.set.push_back({.name = m.name(),
                          .value = m.value(),
                          .preempts = !m.never_preempts(),
                          .global_default = m.global_default(),
                          .description = m.description()});
  }
  return change;
}

}  // namespace codec

std::string EncodePriorityClasses(const PriorityClassChange& classes) {
  codec::pb::PriorityClassChange message;
  codec::SetPriorityClasses(classes, &message);
  return message.SerializeAsString();
}

absl::StatusOr<PriorityClassChange> DecodePriorityClasses(absl::string_view value,
                                                          std::string* unknown) {
  codec::pb::PriorityClassChange message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  if (!status.ok()) return NameRecord(status, RecordKind::kMeta, kPriorityClassesKey);
  return codec::GetPriorityClasses(message);
}

}  // namespace berth
