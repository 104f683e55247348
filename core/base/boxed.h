// A value on the heap that may be absent, and is copied and compared as a value: for fields that
// few objects of many have. 8 bytes when it is absent.
#ifndef BERTH_CORE_BASE_BOXED_H_
#define BERTH_CORE_BASE_BOXED_H_

#include <memory>
#include <utility>

namespace berth {

template <class T>
class Boxed {
 public:
  Boxed() = default;
  Boxed(T value)
      : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT(google-explicit-constructor)
  Boxed(const Boxed& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) {
    if (this != &other) value_ = other ? std::make_unique<T>(*other) : nullptr;
    return *this;
  }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  explicit operator bool() const { return value_ != nullptr; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  // Present from then on.
  T& Mutable() {
    if (value_ == nullptr) value_ = std::make_unique<T>();
    return *value_;
  }
  void reset() { value_.reset(); }

  friend bool operator==(const Boxed& a, const Boxed& b) { return a && b ? *a == *b : !a && !b; }
  template <typename H>
  friend H AbslHashValue(H h, const Boxed& v) {
    return v ? H::combine(std::move(h), true, *v) : H::combine(std::move(h), false);
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace berth

#endif  // BERTH_CORE_BASE_BOXED_H_
