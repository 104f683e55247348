// Two messages of one type side by side, by reflection.
#ifndef BERTH_CLIENTS_SIM_EXPECTATION_TEXT_H_
#define BERTH_CLIENTS_SIM_EXPECTATION_TEXT_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace berth {

// One line for each field that `expected` has set and `actual` has not, or otherwise. Maps are
// compared by the keys that are expected.
void DiffFields(const google::protobuf::Message& expected, const google::protobuf::Message& actual,
                const std::string& path, std::vector<std::string>* lines);

// Copies from `actual` what `named` has set.
void CopyNamed(const google::protobuf::Message& named, const google::protobuf::Message& actual,
               google::protobuf::Message* to);

// {state: Running, on: [n0, n1]}: YAML in one line, without what is not set.
std::string FlowText(const google::protobuf::Message& message);

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_EXPECTATION_TEXT_H_
