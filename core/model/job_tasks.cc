#include "core/model/job_tasks.h"

namespace berth {

JobTasks::JobTasks(const JobTasks& other) : only_(other.only_) {
  if (other.blocks_ == nullptr) return;
  Reset(other.size());
  for (size_t i = 0; i < size(); ++i) Set(i, other[i]);
}

JobTasks& JobTasks::operator=(const JobTasks& other) {
  if (this != &other) *this = JobTasks(other);
  return *this;
}

void JobTasks::Reset(size_t size) {
  only_ = Task{};
  blocks_.reset();
  if (size == 1) return;
  blocks_ = std::make_unique<Blocks>();
  blocks_->size = size;
  blocks_->blocks.resize((size + kBlock - 1) / kBlock);
}

Task JobTasks::SetInBlock(size_t index, const Task& value) {
  Block& block = blocks_->blocks[index / kBlock];
  const bool changes = !(value == kInitial);
  if (block.tasks == nullptr) {
    if (!changes) return kInitial;
    block.tasks = std::make_unique<Task[]>(TasksIn(index / kBlock));
  }
  Task& task = block.tasks[index % kBlock];
  const Task before = task;
  task = value;
  if (changes) ++block.changed;
  if (!(before == kInitial) && --block.changed == 0) block.tasks.reset();
  return before;
}

Task& JobTasks::Changed(size_t index) {
  BERTH_CHECK(index < size());
  if (blocks_ == nullptr) return only_;
  Block& block = blocks_->blocks[index / kBlock];
  BERTH_CHECK(block.tasks != nullptr);
  return block.tasks[index % kBlock];
}

size_t JobTasks::stored() const {
  if (blocks_ == nullptr) return 1;
  size_t tasks = 0;
  for (size_t b = 0; b < blocks_->blocks.size(); ++b) {
    if (blocks_->blocks[b].tasks != nullptr) tasks += TasksIn(b);
  }
  return tasks;
}

}  // namespace berth
