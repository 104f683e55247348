// The policies of this example.
#ifndef CUSTOM_POLICY_POLICIES_H_
#define CUSTOM_POLICY_POLICIES_H_

#include <memory>

#include "core/engine/policies.h"

namespace custom {

// "maintenance": keeps tasks without a toleration for it off nodes labelled maintenance=soon.
std::unique_ptr<berth::NodeFilter> MakeMaintenanceFilter();

// "newest_first": prefers nodes with a higher label `generation`; those without one come last.
std::unique_ptr<berth::NodeScore> MakeNewestFirstScore();

}  // namespace custom

#endif  // CUSTOM_POLICY_POLICIES_H_
