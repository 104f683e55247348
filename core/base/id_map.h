// IdMap: values by a dense, growing id. Lookup is two array steps, iteration is in id order, and
// pointers to values stay valid until that value is erased. Ids are handed out increasingly and not
// reused, so old chunks empty out and are freed; a directory slot of 8 bytes per 256 ids ever used
// remains.
#ifndef BERTH_CORE_BASE_ID_MAP_H_
#define BERTH_CORE_BASE_ID_MAP_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace berth {

template <class IdType, class T>
class IdMap {
 public:
  T* Find(IdType id) { return const_cast<T*>(std::as_const(*this).Find(id)); }
  const T* Find(IdType id) const {
    const size_t chunk = id.value / kChunk;
    if (chunk >= chunks_.size() || chunks_[chunk] == nullptr) return nullptr;
    const std::optional<T>& slot = chunks_[chunk]->slots[id.value % kChunk];
    return slot.has_value() ? &*slot : nullptr;
  }

  // The id must be present.
  T& At(IdType id) {
    T* found = Find(id);
    BERTH_CHECK(found != nullptr);
    return *found;
  }
  const T& At(IdType id) const {
    const T* found = Find(id);
    BERTH_CHECK(found != nullptr);
    return *found;
  }

  // Asks the processor to have the first `bytes` of the value at hand soon. Any id.
  void Prefetch(IdType id, size_t bytes) const {
    const size_t chunk = id.value / kChunk;
    if (chunk >= chunks_.size() || chunks_[chunk] == nullptr) return;
    const auto* slot = reinterpret_cast<const char*>(&chunks_[chunk]->slots[id.value % kChunk]);
    constexpr size_t kLine = 64;
    for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(slot + at);
  }

  // The id must be absent.
  T& Insert(IdType id, T value) { return Emplace(id, std::move(value)); }
  template <class... Args>
  T& Emplace(IdType id, Args&&... args) {
    const size_t chunk = id.value / kChunk;
    if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
    // Not make_unique, which would fill it with zeros first.
    if (chunks_[chunk] == nullptr) chunks_[chunk].reset(new Chunk);
    std::optional<T>& slot = chunks_[chunk]->slots[id.value % kChunk];
    BERTH_CHECK(!slot.has_value());
    slot.emplace(std::forward<Args>(args)...);
    ++chunks_[chunk]->used;
    ++size_;
    return *slot;
  }

  // The id must be present.
  void Erase(IdType id) {
    BERTH_CHECK(Find(id) != nullptr);
    std::unique_ptr<Chunk>& chunk = chunks_[id.value / kChunk];
    chunk->slots[id.value % kChunk].reset();
    --size_;
    if (--chunk->used == 0) chunk.reset();
  }

  // The first present id that is >= `from`, or nullopt. Steps over empty chunks, so paging costs
  // O(page + directory).
  std::optional<IdType> NextFrom(IdType from) const {
    size_t slot = from.value % kChunk;
    for (size_t chunk = from.value / kChunk; chunk < chunks_.size(); ++chunk, slot = 0) {
      if (chunks_[chunk] == nullptr) continue;
      for (; slot < kChunk; ++slot) {
        if (chunks_[chunk]->slots[slot].has_value()) {
          return IdType{static_cast<typename IdType::Value>(chunk * kChunk + slot)};
        }
      }
    }
    return std::nullopt;
  }

  // Likewise the last present id that is <= `from`.
  std::optional<IdType> NextBackFrom(IdType from) const {
    size_t chunk = std::min<size_t>(from.value / kChunk, chunks_.size());
    size_t slots = from.value % kChunk + 1;  // of that chunk, those before this one
    if (chunk == chunks_.size()) slots = 0;
    while (true) {
      if (slots > 0 && chunks_[chunk] != nullptr) {
        for (; slots > 0; --slots) {
          if (chunks_[chunk]->slots[slots - 1].has_value()) {
            return IdType{static_cast<typename IdType::Value>(chunk * kChunk + slots - 1)};
          }
        }
      }
      if (chunk == 0) return std::nullopt;
      --chunk;
      slots = kChunk;
    }
  }

  // Calls visit(id, value) in id order. The map must not change meanwhile.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (auto id = NextFrom(IdType{0}); id.has_value(); id = NextFrom(IdType{id->value + 1})) {
      visit(*id, At(*id));
    }
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr size_t kChunk = 256;
  struct Chunk {
    std::array<std::optional<T>, kChunk> slots;
    size_t used = 0;
  };
  std::vector<std::unique_ptr<Chunk>> chunks_;
  size_t size_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_BASE_ID_MAP_H_
