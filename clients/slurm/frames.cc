#include "clients/slurm/frames.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth {
namespace {

constexpr size_t kHeadBytes = 5;  // kind, length

}  // namespace

std::string EncodeNumber(int32_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

int32_t TakeNumber(std::string* data) {
  int32_t number = 0;
  if (data->size() < sizeof number) return 0;
  std::memcpy(&number, data->data(), sizeof number);
  data->erase(0, sizeof number);
  return number;
}

std::string EncodeFrame(FrameKind kind, absl::string_view data) {
  std::string frame(1, static_cast<char>(kind));
  frame += EncodeNumber(static_cast<int32_t>(data.size()));
  frame.append(data.data(), data.size());
  return frame;
}

std::optional<Frame> FrameReader::Next() {
  const size_t left = buffer_.size() - at_;
  if (broken_ || left < kHeadBytes) return std::nullopt;
  uint32_t size = 0;
  std::memcpy(&size, buffer_.data() + at_ + 1, sizeof size);
  broken_ = size > kMostFrameBytes;
  if (broken_ || left < kHeadBytes + size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(buffer_[at_]), buffer_.substr(at_ + kHeadBytes, size)};
  at_ += kHeadBytes + size;
  if (at_ == buffer_.size()) {
    buffer_.clear();
    at_ = 0;
  }
  return frame;
}

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return false;
    pollfd room{fd, POLLOUT, 0};
    poll(&room, 1, -1);
  }
  return true;
}

}  // namespace berth
