#include "server/convert/priority_class.h"

#include <string>

namespace berth {

PriorityClass PriorityClassFrom(const v1::PriorityClass& message) {
  return {.name = message.name(),
          .value = message.value(),
          .preempts = message.preemption_policy() != v1::NEVER,
          .global_default = message.global_default(),
          .description = message.description()};
}

void RenderPriorityClass(const PriorityClass& from, v1::PriorityClass* out) {
  out->set_name(from.name);
  out->set_value(from.value);
  out->set_preemption_policy(from.preempts ? v1::PREEMPT_LOWER_PRIORITY : v1::NEVER);
  out->set_global_default(from.global_default);
  out->set_description(from.description);
}

void UpdatePriorityClass(const google::protobuf::FieldMask& mask, const PriorityClass& from,
                         PriorityClass& to) {
  for (const std::string& path : mask.paths()) {
    if (path == "value") to.value = from.value;
    if (path == "preemption_policy") to.preempts = from.preempts;
    if (path == "global_default") to.global_default = from.global_default;
    if (path == "description") to.description = from.description;
  }
}

}  // namespace berth
