// IdMap: values by an increasing id. Lookup is two array steps, iteration is in id order, and
// pointers to values stay valid until that value is erased. Ids are assigned in increasing order
// and not reused, so old chunks become empty and are freed; a directory slot of 8 bytes per 256 ids
// ever used remains.
//
// Ids may jump: job uids continue far above the old ones after a restore. Each stretch of ids
// without a jump has its own directory:
//
//   ids 1..700, then 30'000'000'000'000..   ->   stretch from chunk 0: 3 slots,
//                                                stretch from chunk 117'187'497'984: 2017 slots
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
    const Chunk* chunk = ChunkAt(id.value / kChunk);
    if (chunk == nullptr) return nullptr;
    const std::optional<T>& slot = chunk->slots[id.value % kChunk];
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

  // Prefetches the first `bytes` of the value. Any id.
  void Prefetch(IdType id, size_t bytes) const {
    const Chunk* chunk = ChunkAt(id.value / kChunk);
    if (chunk == nullptr) return;
    const auto* slot = reinterpret_cast<const char*>(&chunk->slots[id.value % kChunk]);
    constexpr size_t kLine = 64;
    for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(slot + at);
  }

  // The id must be absent.
  T& Insert(IdType id, T value) { return Emplace(id, std::move(value)); }
  template <class... Args>
  T& Emplace(IdType id, Args&&... args) {
    std::unique_ptr<Chunk>& chunk = MakeRoom(id.value / kChunk);
    // Not make_unique, which would zero it first.
    if (chunk == nullptr) chunk.reset(new Chunk);
    std::optional<T>& slot = chunk->slots[id.value % kChunk];
    BERTH_CHECK(!slot.has_value());
    slot.emplace(std::forward<Args>(args)...);
    ++chunk->used;
    ++size_;
    return *slot;
  }

  // The id must be present.
  void Erase(IdType id) {
    BERTH_CHECK(Find(id) != nullptr);
    Stretch& stretch = stretches_[StretchOf(id.value / kChunk)];
    std::unique_ptr<Chunk>& chunk = stretch.chunks[id.value / kChunk - stretch.first];
    chunk->slots[id.value % kChunk].reset();
    --size_;
    if (--chunk->used == 0) chunk.reset();
  }

  // The first present id that is >= `from`, or nullopt. Steps over empty chunks, so paging costs
  // O(page + directory).
  std::optional<IdType> NextFrom(IdType from) const {
    const size_t chunk = from.value / kChunk;
    for (size_t i = StretchOf(chunk); i < stretches_.size(); ++i) {
      const Stretch& stretch = stretches_[i];
      size_t at = chunk > stretch.first ? chunk - stretch.first : 0;
      size_t slot = chunk >= stretch.first ? from.value % kChunk : 0;
      for (; at < stretch.chunks.size(); ++at, slot = 0) {
        if (stretch.chunks[at] == nullptr) continue;
        for (; slot < kChunk; ++slot) {
          if (!stretch.chunks[at]->slots[slot].has_value()) continue;
          return IdType{static_cast<typename IdType::Value>((stretch.first + at) * kChunk + slot)};
        }
      }
    }
    return std::nullopt;
  }

  // Likewise, the last present id that is <= `from`.
  std::optional<IdType> NextBackFrom(IdType from) const {
    const size_t chunk = from.value / kChunk;
    for (size_t i = std::min(StretchOf(chunk) + 1, stretches_.size()); i-- > 0;) {
      const Stretch& stretch = stretches_[i];
      if (stretch.first > chunk || stretch.chunks.empty()) continue;
      const size_t begin = std::min<size_t>(chunk - stretch.first, stretch.chunks.size() - 1);
      for (size_t at = begin + 1; at-- > 0;) {
        if (stretch.chunks[at] == nullptr) continue;
        for (size_t slot = stretch.first + at == chunk ? from.value % kChunk + 1 : kChunk;
             slot-- > 0;) {
          if (!stretch.chunks[at]->slots[slot].has_value()) continue;
          return IdType{static_cast<typename IdType::Value>((stretch.first + at) * kChunk + slot)};
        }
      }
    }
    return std::nullopt;
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
  struct Stretch {
    size_t first = 0;  // number of its first chunk, a multiple of kLeap
    std::vector<std::unique_ptr<Chunk>> chunks;
  };
  static constexpr size_t kLeap = 4096;  // chunks: smaller gaps cost up to 32 KiB of directory

  // The last stretch that begins at or before the chunk; 0 if there is none.
  size_t StretchOf(size_t chunk) const {
    size_t i = stretches_.size();
    while (i > 1 && stretches_[i - 1].first > chunk) --i;
    return i == 0 ? 0 : i - 1;
  }

  const Chunk* ChunkAt(size_t chunk) const {
    if (stretches_.empty()) return nullptr;
    const Stretch& stretch = stretches_[StretchOf(chunk)];
    const size_t at = chunk - stretch.first;  // huge before the first stretch
    return at < stretch.chunks.size() ? stretch.chunks[at].get() : nullptr;
  }

  // The slot of a chunk, in the stretch that it continues or in a new one. A stretch may grow up to
  // the start of the next one: later ids are in the later stretch.
  std::unique_ptr<Chunk>& MakeRoom(size_t chunk) {
    size_t i = StretchOf(chunk);
    const bool before_all = stretches_.empty() || chunk < stretches_[i].first;
    if (before_all || chunk - stretches_[i].first >= stretches_[i].chunks.size() + kLeap) {
      i += before_all ? 0 : 1;
      stretches_.insert(stretches_.begin() + static_cast<std::ptrdiff_t>(i),
                        Stretch{chunk - chunk % kLeap, {}});
    }
    Stretch& stretch = stretches_[i];
    const size_t at = chunk - stretch.first;
    if (at >= stretch.chunks.size()) stretch.chunks.resize(at + 1);
    return stretch.chunks[at];
  }

  std::vector<Stretch> stretches_;  // sorted, not overlapping
  size_t size_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_BASE_ID_MAP_H_
