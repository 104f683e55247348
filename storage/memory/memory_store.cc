#include "storage/memory/memory_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/keys.h"

namespace berth {

std::unique_ptr<MemoryStore> MemoryStore::Copy(uint64_t incarnation) const {
  auto copy = std::make_unique<MemoryStore>(cluster_id_, format_, incarnation);
  absl::MutexLock lock(&mutex_);
  absl::MutexLock copying(&copy->mutex_);
  copy->records_ = records_;
  copy->bases_ = bases_;
  copy->log_ = log_;
  copy->last_sequence_ = last_sequence_;
  copy->last_hash_ = last_hash_;
  return copy;
}

void MemoryStore::SetFault(std::function<absl::Status()> fault) {
  absl::MutexLock lock(&mutex_);
  fault_ = std::move(fault);
}

absl::Status MemoryStore::Load(RecordVisitor visit) {
  absl::MutexLock lock(&mutex_);
  return Visit(records_, visit);
}

absl::Status MemoryStore::Visit(const AllRecords& records, RecordVisitor visit) {
  for (size_t kind = 0; kind < kRecordKinds; ++kind) {
    for (const auto& [key, value] : records[kind]) {
      absl::Status status = visit(static_cast<RecordKind>(kind), key, value);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

uint64_t MemoryStore::LastSequence() const {
  absl::MutexLock lock(&mutex_);
  return last_sequence_;
}

absl::Status MemoryStore::Append(const std::vector<const Batch*>& batches) {
  absl::MutexLock lock(&mutex_);
  absl::Status status = Write(batches, nullptr);
  if (status.ok()) unsynced_.clear();
  return status;
}

absl::Status MemoryStore::AppendBehind(const std::vector<const Batch*>& batches) {
  absl::MutexLock lock(&mutex_);
  return Write(batches, &unsynced_);
}

absl::Status MemoryStore::Sync() {
  absl::MutexLock lock(&mutex_);
  unsynced_.clear();
  return absl::OkStatus();
}

uint64_t MemoryStore::SyncedSequence() const {
  absl::MutexLock lock(&mutex_);
  return last_sequence_ - unsynced_.size();
}

ChainHash MemoryStore::LastHash() const {
  absl::MutexLock lock(&mutex_);
  return last_hash_;
}

std::unique_ptr<MemoryStore> MemoryStore::LosePower(size_t kept) const {
  std::unique_ptr<MemoryStore> store = Copy(incarnation_);
  absl::MutexLock lock(&mutex_);
  absl::MutexLock losing(&store->mutex_);
  for (size_t i = unsynced_.size(); i > kept; --i) {
    const Undo& undo = unsynced_[i - 1];
    for (auto record = undo.records.rbegin(); record != undo.records.rend(); ++record) {
      store->PutRecord(*record);
    }
    store->log_.erase(store->last_sequence_--);
    store->last_hash_ = undo.hash;
    store->format_ = undo.format;
  }
  return store;
}

absl::Status MemoryStore::Write(const std::vector<const Batch*>& batches, std::vector<Undo>* undo) {
  if (!dead_.ok()) return dead_;
  if (absl::Status status = Check(batches); !status.ok()) return status;
  const absl::Status fault = fault_ == nullptr ? absl::OkStatus() : fault_();
  if (!fault.ok()) {
    if (!absl::IsResourceExhausted(fault)) dead_ = fault;
    return fault;
  }
  for (const Batch* batch : batches) {
    if (undo != nullptr) undo->push_back(UndoOf(*batch));
    Put(*batch);
  }
  return absl::OkStatus();
}

MemoryStore::Undo MemoryStore::UndoOf(const Batch& batch) const {
  Undo undo{.hash = last_hash_, .format = format_};
  for (const Record& record : batch.records) {
    Record& before = undo.records.emplace_back();
    before.kind = record.kind;
    before.key = record.key;
    const Records& records = records_[static_cast<size_t>(record.kind)];
    if (const auto found = records.find(record.key); found != records.end()) {
      before.value = found->second;
    }
  }
  return undo;
}

absl::Status MemoryStore::Check(const std::vector<const Batch*>& batches) const {
  uint64_t expected = last_sequence_;
  for (const Batch* batch : batches) {
    if (batch->sequence != ++expected) {
      return absl::InvalidArgumentError(
          absl::StrCat("got batch ", batch->sequence, ", expected batch ", expected));
    }
    for (const Record& record : batch->records) {
      if (record.kind == RecordKind::kLog ||
          (record.kind == RecordKind::kMeta && record.key == kStoreKey)) {
        return absl::InvalidArgumentError("a batch contains a record that belongs to the store");
      }
    }
  }
  return absl::OkStatus();
}

void MemoryStore::PutRecord(const Record& record) {
  Records& records = records_[static_cast<size_t>(record.kind)];
  if (record.value.has_value()) {
    records.insert_or_assign(record.key, *record.value);
  } else {
    records.erase(record.key);
  }
}

void MemoryStore::Put(const Batch& batch) {
  for (const Record& record : batch.records) PutRecord(record);
  log_.emplace(batch.sequence, batch.log);
  last_hash_ = NextChainHash(last_hash_, batch.sequence, batch.log);
  if (batch.newest_format) format_ = kStoreFormat;
  last_sequence_ = batch.sequence;
}

absl::StatusOr<std::string> MemoryStore::Read(RecordKind kind, absl::string_view key) const {
  absl::MutexLock lock(&mutex_);
  const Records& records = records_[static_cast<size_t>(kind)];
  const auto found = records.find(std::string_view(key.data(), key.size()));
  if (found != records.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat(RecordKindName(kind), " ", PrintableKey(kind, key), ": no such record"));
}

absl::StatusOr<std::vector<LogEntry>> MemoryStore::ReadLog(uint64_t after, size_t limit) const {
  absl::MutexLock lock(&mutex_);
  std::vector<LogEntry> entries;
  if (after >= last_sequence_) return entries;
  auto entry = log_.find(after + 1);
  if (entry == log_.end()) {
    return absl::OutOfRangeError(absl::StrCat("log ", after + 1, ": no longer kept"));
  }
  for (; entry != log_.end() && entries.size() < limit; ++entry) {
    entries.push_back({.sequence = entry->first, .turn = entry->second});
  }
  return entries;
}

absl::Status MemoryStore::TrimLog(uint64_t sequence) {
  absl::MutexLock lock(&mutex_);
  if (last_sequence_ == 0) return absl::OkStatus();
  auto kept = bases_.upper_bound(sequence);
  if (kept != bases_.begin()) {
    --kept;
    sequence = kept->first;
    bases_.erase(bases_.begin(), kept);
  } else if (!bases_.empty() && log_.contains(1)) {
    return absl::OkStatus();
  }
  log_.erase(log_.begin(), log_.upper_bound(std::min(sequence, last_sequence_ - 1)));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemoryStore::KeepBase() {
  absl::MutexLock lock(&mutex_);
  AllRecords& base = bases_[last_sequence_];
  base = records_;
  base[static_cast<size_t>(RecordKind::kRequest)].clear();
  return last_sequence_;
}

absl::StatusOr<std::vector<uint64_t>> MemoryStore::Bases() const {
  absl::MutexLock lock(&mutex_);
  std::vector<uint64_t> sequences;
  for (const auto& [sequence, records] : bases_) sequences.push_back(sequence);
  return sequences;
}

absl::Status MemoryStore::LoadBase(uint64_t sequence, RecordVisitor visit) const {
  absl::MutexLock lock(&mutex_);
  const auto found = bases_.find(sequence);
  return found == bases_.end() ? Store::LoadBase(sequence, visit) : Visit(found->second, visit);
}

}  // namespace berth
