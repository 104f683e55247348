// Parts of a task's message that the core reads. Includes nothing, so that the supervisor, which
// does not link the core, uses the same text.
#ifndef BERTH_CORE_MODEL_TASK_MESSAGE_H_
#define BERTH_CORE_MODEL_TASK_MESSAGE_H_

namespace berth {

// Part of the message of a task that the kernel killed because its memory ran out.
inline constexpr char kOutOfMemory[] = "out of memory: the kernel killed";

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TASK_MESSAGE_H_
