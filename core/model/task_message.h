// What agents say in a task's message, as far as the core reads it. It includes nothing, so that
// the supervisor, which links no core, says the very same.
#ifndef BERTH_CORE_MODEL_TASK_MESSAGE_H_
#define BERTH_CORE_MODEL_TASK_MESSAGE_H_

namespace berth {

// Stands in the message of a task that the kernel killed because its memory ran out.
inline constexpr char kOutOfMemory[] = "out of memory: the kernel killed";

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TASK_MESSAGE_H_
