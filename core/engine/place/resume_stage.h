// Lets frozen jobs go on that wait for their CPU, and for devices that they lend. Each node's go to
// them in the order in which queues serve jobs that hold places: by priority, deadline and age;
// those that take turns by priority and how long they have been paused. One that must wait keeps
// others behind it from taking what it waits for, and so does its reservation (NodeSums::reserved,
// awaited) with jobs that are not placed yet.
#ifndef BERTH_CORE_ENGINE_PLACE_RESUME_STAGE_H_
#define BERTH_CORE_ENGINE_PLACE_RESUME_STAGE_H_

#include "core/engine/cycle.h"

namespace berth {

void RunResumes(Cycle& cycle);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACE_RESUME_STAGE_H_
