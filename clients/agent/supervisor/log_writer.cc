#include "clients/agent/supervisor/log_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace berth {
namespace {

std::string LittleEndian(uint64_t value) {
  std::string bytes(sizeof value, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

}  // namespace

SegmentWriter::SegmentWriter(std::string directory, std::string name, size_t files)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      files_(std::max<size_t>(files, 1)) {}

SegmentWriter::~SegmentWriter() {
  if (fd_ >= 0) close(fd_);
}

bool SegmentWriter::Rotate(int64_t position) {
  const std::string base = directory_ + "/" + name_ + ".";
  const int fd = ::open((base + std::to_string(position)).c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  size_ = 0;
  positions_.push_back(position);
  while (positions_.size() > files_) {
    unlink((base + std::to_string(positions_.front())).c_str());
    positions_.pop_front();
  }
  return true;
}

int64_t SegmentWriter::Append(std::string_view data) {
  int64_t written = 0;
  while (!data.empty()) {
    const ssize_t n = pwrite(fd_, data.data(), data.size(), size_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    data.remove_prefix(static_cast<size_t>(n));
    size_ += n;
    written += n;
  }
  return written;
}

bool SegmentWriter::OverwriteTail(std::string_view data) {
  const ssize_t length = static_cast<ssize_t>(data.size());
  return pwrite(fd_, data.data(), data.size(), size_ - length) == length;
}

LogWriter::LogWriter(const std::string& directory, int64_t file_bytes, int64_t files)
    : file_bytes_(std::max<int64_t>(file_bytes, 1)),
      streams_{{directory, "stdout", static_cast<size_t>(files)},
               {directory, "stderr", static_cast<size_t>(files)}},
      order_(directory, "order", kOrderFiles),
      times_{{.segments = {directory, "times.stdout", kTimeFiles}},
             {.segments = {directory, "times.stderr", kTimeFiles}}} {}

void LogWriter::Append(OutputStream stream, std::string_view data, int64_t now_ms) {
  const int index = static_cast<int>(stream);
  RecordTime(stream, now_ms);
  const int64_t written = AppendToStream(streams_[index], offsets_[index], data);
  offsets_[index] += written;
  dropped_ += static_cast<int64_t>(data.size()) - written;
  if (written > 0) RecordOrder(stream);
}

int64_t LogWriter::AppendToStream(SegmentWriter& segments, int64_t offset, std::string_view data) {
  int64_t written = 0;
  while (!data.empty()) {
    if ((!segments.open() || segments.size() >= file_bytes_) && !segments.Rotate(offset + written))
      break;
    const int64_t room = file_bytes_ - segments.size();
    const std::string_view part = data.substr(0, static_cast<size_t>(room));
    const int64_t n = segments.Append(part);
    written += n;
    if (n < static_cast<int64_t>(part.size())) break;
    data.remove_prefix(part.size());
  }
  return written;
}

void LogWriter::RecordOrder(OutputStream stream) {
  const int index = static_cast<int>(stream);
  const std::string record =
      LittleEndian(static_cast<uint64_t>(offsets_[index]) << 1 | static_cast<uint64_t>(index));
  if (last_stream_ == index && order_.OverwriteTail(record)) return;
  const bool full = order_.size() >= kOrderRecordsPerFile * kOrderRecordBytes;
  if ((!order_.open() || full) && !order_.Rotate(order_records_)) return;
  if (order_.Append(record) != kOrderRecordBytes) return;
  ++order_records_;
  last_stream_ = index;
}

void LogWriter::RecordTime(OutputStream stream, int64_t now_ms) {
  Times& times = times_[static_cast<int>(stream)];
  if (times.records > 0 && now_ms >= times.last_ms && now_ms < times.last_ms + kTimeStepMs) return;
  const bool full = times.segments.size() >= kTimeRecordsPerFile * kTimeRecordBytes;
  if ((!times.segments.open() || full) && !times.segments.Rotate(times.records)) return;
  const std::string record =
      LittleEndian(static_cast<uint64_t>(offsets_[static_cast<int>(stream)])) +
      LittleEndian(static_cast<uint64_t>(now_ms));
  if (times.segments.Append(record) != kTimeRecordBytes) return;
  ++times.records;
  times.last_ms = now_ms;
}

}  // namespace berth
