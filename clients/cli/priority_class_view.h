// Formats priority classes for people, the highest value first.
#ifndef BERTH_CLIENTS_CLI_PRIORITY_CLASS_VIEW_H_
#define BERTH_CLIENTS_CLI_PRIORITY_CLASS_VIEW_H_

#include "berth/v1/priority_class.pb.h"
#include "clients/cli/output.h"

namespace berth {

Shape<v1::PriorityClass> PriorityClassShape();

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_PRIORITY_CLASS_VIEW_H_
