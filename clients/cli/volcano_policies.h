// Lifecycle policies of Volcano's jobs and tasks as Berth's.
#ifndef BERTH_CLIENTS_CLI_VOLCANO_POLICIES_H_
#define BERTH_CLIENTS_CLI_VOLCANO_POLICIES_H_

#include <string>

#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/foreign_document.h"

namespace berth {

using VolcanoPolicies = google::protobuf::RepeatedPtrField<volcano::v1::Policy>;

// `path` is that of the list. Policies that contradict each other are refused, as Volcano does.
void ConvertVolcanoPolicies(const std::string& path, const VolcanoPolicies& in,
                            ForeignDocument* document,
                            google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>* out);

// True if one of the policies says what follows the failure of a task.
bool HandlesFailures(const VolcanoPolicies& policies);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_VOLCANO_POLICIES_H_
