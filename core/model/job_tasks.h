// JobTasks: the tasks of one job. Memory is used only for tasks that left their initial state.
//
// A task is in its initial state (Task{}: pending, never bound) from submit until its first bind.
// Such tasks are all equal and not stored; reading one returns a shared constant. A job with one
// task, the most common case, stores it in place. A larger job stores blocks of kBlock tasks, and a
// block only while one of its tasks is not in its initial state:
//
//   70 tasks, 33 runs:  block 0 (0..31) none, block 1 (32..63) stored, block 2 (64..69) none
//
// So a pending job of 10,000 tasks takes 5 KB, not 1 MB, and a tentative plan leaves nothing behind
// when it is undone.
#ifndef BERTH_CORE_MODEL_JOB_TASKS_H_
#define BERTH_CORE_MODEL_JOB_TASKS_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/model/task.h"

namespace berth {

class JobTasks {
 public:
  static constexpr size_t kBlock = 32;

  // One task in its initial state.
  JobTasks() = default;
  JobTasks(const JobTasks& other);
  JobTasks& operator=(const JobTasks& other);
  JobTasks(JobTasks&&) = default;
  JobTasks& operator=(JobTasks&&) = default;

  // All in their initial state.
  void Reset(size_t size);

  size_t size() const { return blocks_ == nullptr ? 1 : blocks_->size; }

  // Valid until the next Set on this list.
  const Task& operator[](size_t index) const {
    assert(index < size());
    if (blocks_ == nullptr) return only_;
    const Task* tasks = blocks_->blocks[index / kBlock].tasks.get();
    return tasks == nullptr ? kInitial : tasks[index % kBlock];
  }
  const Task& at(size_t index) const {
    BERTH_CHECK(index < size());
    return (*this)[index];
  }

  // Returns the previous value.
  Task Set(size_t index, const Task& value) {
    if (blocks_ == nullptr) return std::exchange(only_, value);
    return SetInBlock(index, value);
  }

  // Mutable access to a task that is not in its initial state, before and after the change.
  Task& Changed(size_t index);

  // Number of tasks with memory. The list takes a few more bytes per block.
  size_t stored() const;

  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Task;
    using difference_type = std::ptrdiff_t;
    using pointer = const Task*;
    using reference = const Task&;

    const_iterator() = default;
    const_iterator(const JobTasks* list, size_t index) : list_(list), index_(index) {}
    reference operator*() const { return (*list_)[index_]; }
    pointer operator->() const { return &(*list_)[index_]; }
    const_iterator& operator++() {
      ++index_;
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const const_iterator&) const = default;

   private:
    const JobTasks* list_ = nullptr;
    size_t index_ = 0;
  };
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }

 private:
  static constexpr Task kInitial{};

  struct Block {
    std::unique_ptr<Task[]> tasks;  // null: all are in their initial state
    uint32_t changed = 0;           // tasks not in their initial state
  };
  struct Blocks {
    size_t size = 0;
    std::vector<Block> blocks;
  };
  size_t TasksIn(size_t block) const { return std::min(kBlock, blocks_->size - block * kBlock); }
  Task SetInBlock(size_t index, const Task& value);

  Task only_;                       // for a single task
  std::unique_ptr<Blocks> blocks_;  // for more than one
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_JOB_TASKS_H_
