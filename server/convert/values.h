// Small conversions that the converters share. Only validated values.
#ifndef BERTH_SERVER_CONVERT_VALUES_H_
#define BERTH_SERVER_CONVERT_VALUES_H_

#include <google/protobuf/map.h>
#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "berth/v1/types.pb.h"
#include "core/model/cluster_state.h"
#include "core/model/job.h"
#include "core/model/resources.h"
#include "support/proto_time.h"

namespace berth {

std::vector<NamedAmount> SortedByName(std::vector<NamedAmount> amounts);
// Sorted by name, as the core requires.
std::vector<NamedAmount> AmountsFrom(const google::protobuf::Map<std::string, int64_t>& whole);
// Includes the dedicated fields (cpu, memory, scratch) that are set.
std::vector<NamedAmount> AmountsFrom(const v1::ResourceList& list);
// Adds the bytes of scratch, if any.
void AddScratch(int64_t bytes, std::vector<NamedAmount>* amounts);
void ToProto(const std::vector<NamedAmount>& amounts, v1::ResourceList* out);
// Kinds with amount 0 are left out, except cpu and memory.
void ToProto(const Resources& resources, const Interner& interner, v1::ResourceList* out);

// An amount in the model's unit (UnitOf), exactly: "500m" of cpu, "1536Mi" of memory, "2.5" gpus.
std::string AmountText(const std::string& resource, int64_t amount);

// The UUIDs of these devices of the node, in its order.
void RenderUuids(const Node& node, const DeviceSet& devices,
                 google::protobuf::RepeatedPtrField<std::string>* out);

inline std::map<std::string, std::string> LabelsFrom(
    const google::protobuf::Map<std::string, std::string>& labels) {
  return {labels.begin(), labels.end()};
}
inline void ToProto(const std::map<std::string, std::string>& labels,
                    google::protobuf::Map<std::string, std::string>* out) {
  for (const auto& [key, value] : labels) (*out)[key] = value;
}

// Requests only memory, neither devices nor a share: a share by memory.
bool RequestsByMemory(const v1::DeviceRequest& device);

// Requests a part of one device, in any form.
bool RequestsShare(const v1::DeviceRequest& device);

Strategy StrategyFrom(v1::Strategy strategy);
v1::Strategy StrategyToApi(Strategy strategy);

// "JOB_" + "RUNNING" -> "RUNNING": an enum value's name for map keys and metrics.
std::string ShortName(absl::string_view enum_value_name, absl::string_view prefix);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_VALUES_H_
