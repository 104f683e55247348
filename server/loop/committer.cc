#include "server/loop/committer.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/clock.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr int kExitStatus = 74;  // EX_IOERR

bool IsDiskFull(const absl::Status& status) { return absl::IsResourceExhausted(status); }

}  // namespace

void ExitOnStoreFailure(const absl::Status& status) {
  const std::string text = status.ToString();
  std::fprintf(stderr,
               "berthd: the store failed: %s\n"
               "berthd: only changes that were not acknowledged may be lost; exiting, to be "
               "restarted\n",
               text.c_str());
  LogError("the store failed; exiting", {{"error", status}});
  FlushLog();
  _exit(kExitStatus);
}

size_t SizeOf(const Batch& batch) {
  size_t bytes = batch.log.size();
  for (const Record& record : batch.records) {
    bytes += record.key.size() + (record.value.has_value() ? record.value->size() : 0);
  }
  return bytes;
}

// ---- GroupCommitter

GroupCommitter::GroupCommitter(Store* store, CommitterOptions options)
    : store_(store), options_(std::move(options)), durable_(store->LastSequence()) {
  thread_ = std::thread([this] { Run(); });
}

GroupCommitter::~GroupCommitter() { Stop(); }

void GroupCommitter::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void GroupCommitter::Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) {
  absl::MutexLock lock(&mutex_);
  if (dead_ || stopping_) return;
  queue_.push_back({std::move(batch), std::move(on_durable)});
}

size_t GroupCommitter::Backlog() const {
  absl::MutexLock lock(&mutex_);
  return queue_.size() + writing_;
}

std::string GroupCommitter::PausedReason() const {
  {
    absl::MutexLock lock(&mutex_);
    if (!paused_reason_.empty()) return paused_reason_;
  }
  return options_.low_space == nullptr ? "" : options_.low_space();
}

void GroupCommitter::Run() {
  for (;;) {
    std::vector<Entry> group = TakeGroup();
    if (group.empty()) return;
    if (!WriteGroup(group)) return Die();
    Tell(std::move(group));
  }
}

std::vector<GroupCommitter::Entry> GroupCommitter::TakeGroup() {
  const auto awake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&awake));
  std::vector<Entry> group;
  size_t bytes = 0;
  while (!queue_.empty() && group.size() < kMaxGroupBatches && bytes < kMaxGroupBytes) {
    bytes += SizeOf(queue_.front().batch);
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  writing_ = group.size();
  counters_.bytes += bytes;
  return group;
}

bool GroupCommitter::WriteGroup(const std::vector<Entry>& group) {
  std::vector<const Batch*> batches;
  for (const Entry& entry : group) batches.push_back(&entry.batch);
  for (;;) {
    const absl::Duration begin = SystemClock().Steady();
    const absl::Status status = store_->Append(batches);
    counters_.write_seconds.Observe(SystemClock().Steady() - begin);
    ++counters_.writes;
    if (status.ok()) return true;
    if (!IsDiskFull(status)) {
      options_.on_fatal(status);
      return false;
    }
    ++counters_.full_retries;
    if (!Pause(status)) return false;
  }
}

bool GroupCommitter::Pause(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (paused_reason_.empty()) LogError("batches cannot be written now; waiting", {{"error", status}});
  paused_reason_ = std::string(status.message());
  mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.retry_delay);
  return !stopping_;
}

void GroupCommitter::Tell(std::vector<Entry> group) {
  durable_ = group.back().batch.sequence;
  counters_.batches += group.size();
  {
    absl::MutexLock lock(&mutex_);
    if (!paused_reason_.empty()) LogInfo("batches can be written again");
    paused_reason_.clear();
    writing_ = 0;
  }
  for (Entry& entry : group) {
    if (entry.on_durable != nullptr) std::move(entry.on_durable)();
  }
}

void GroupCommitter::Die() {
  absl::MutexLock lock(&mutex_);
  dead_ = true;
  queue_.clear();
}

// ---- SyncCommitter

SyncCommitter::SyncCommitter(Store* store, Mode mode, FatalHandler on_fatal)
    : store_(store), mode_(mode), on_fatal_(std::move(on_fatal)), durable_(store->LastSequence()) {}

void SyncCommitter::Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) {
  if (dead_) return;
  queue_.emplace_back(std::move(batch), std::move(on_durable));
  if (mode_ == Mode::kAtOnce) Flush();
}

bool SyncCommitter::Flush() {
  if (dead_) return false;
  if (queue_.empty()) return true;
  const size_t count = again_ != 0 ? again_ : queue_.size();
  std::vector<const Batch*> batches;
  for (size_t i = 0; i < count; ++i) batches.push_back(&queue_[i].first);
  const absl::Status status = store_->Append(batches);
  paused_reason_ = IsDiskFull(status) ? std::string(status.message()) : "";
  if (!status.ok() && !IsDiskFull(status)) {
    dead_ = true;
    on_fatal_(status);
  }
  again_ = status.ok() ? 0 : count;
  if (!status.ok()) return false;
  durable_ = batches.back()->sequence;
  decltype(queue_) written;
  for (size_t i = 0; i < count; ++i) {
    written.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  for (auto& [batch, effect] : written) {
    if (effect != nullptr) std::move(effect)();
  }
  return queue_.empty();
}

void SyncCommitter::Crash(size_t written) {
  std::vector<const Batch*> batches;
  for (const auto& [batch, effect] : queue_) {
    if (batches.size() < written) batches.push_back(&batch);
  }
  if (!dead_ && !batches.empty())
    store_->Append(batches).IgnoreError();  // if it fails, none was
                                            // written
  dead_ = true;
  queue_.clear();
}

}  // namespace berth
