// Compares two messages of one type by reflection.
#ifndef BERTH_OFFLINE_SIM_EXPECTATION_TEXT_H_
#define BERTH_OFFLINE_SIM_EXPECTATION_TEXT_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace berth {

// Adds a line for each field that is set in `expected` and differs in `actual`. Maps are compared
// only by the keys of `expected`.
void DiffFields(const google::protobuf::Message& expected, const google::protobuf::Message& actual,
                const std::string& path, std::vector<std::string>* lines);

// Copies the fields from `actual` that are set in `named`.
void CopyNamed(const google::protobuf::Message& named, const google::protobuf::Message& actual,
               google::protobuf::Message* to);

// {state: Running, on: [n0, n1]}: YAML in one line, without unset fields.
std::string FlowText(const google::protobuf::Message& message);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_EXPECTATION_TEXT_H_
