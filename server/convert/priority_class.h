// Priority classes: messages of the API <-> values of the core.
#ifndef BERTH_SERVER_CONVERT_PRIORITY_CLASS_H_
#define BERTH_SERVER_CONVERT_PRIORITY_CLASS_H_

#include "berth/v1/priority_class.pb.h"
#include "core/model/priority_classes.h"

namespace berth {

PriorityClass PriorityClassFrom(const v1::PriorityClass& message);  // valid
// All but the etag.
void RenderPriorityClass(const PriorityClass& from, v1::PriorityClass* out);
// Takes the fields of the mask from `from`, which is valid.
void UpdatePriorityClass(const google::protobuf::FieldMask& mask, const PriorityClass& from,
                         PriorityClass& to);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_PRIORITY_CLASS_H_
