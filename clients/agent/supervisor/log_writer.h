// Captures the output of one task: bounded, rotated, readable while it is written.
//
// Each stream is a sequence of bytes with absolute offsets, stored in segments named by the offset
// of their first byte: stdout.0, stdout.16777216, ... If there are more than `files`, the oldest is
// removed. Rotation never renames, so readers need only offsets. The order of the two streams is in
// order.RECORD: 8-byte little-endian records (end offset << 1 | stream), one per contiguous run of
// one stream; the last one is updated in place. Example: "ab" to stdout, "x" to stderr, "c" to
// stdout gives records (2, stdout) (1, stderr) (3, stdout).
//
// The times of output are in times.stdout.RECORD and times.stderr.RECORD: 16-byte little-endian
// records (offset, unix milliseconds), at most one per kTimeStepMs and stream. Output has the time
// of the last record at or before its offset. A record is written before its output. If the disk
// takes the output but not the record, the output gets the time of the previous record.
//
// Output that cannot be written (full disk) is dropped and counted: a task never blocks on its log.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_LOG_WRITER_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_LOG_WRITER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace berth {

inline constexpr int64_t kOrderRecordBytes = 8;
inline constexpr int64_t kOrderRecordsPerFile = 65536;
inline constexpr size_t kOrderFiles = 4;
inline constexpr int64_t kTimeRecordBytes = 16;
inline constexpr int64_t kTimeStepMs = 100;
inline constexpr int64_t kTimeRecordsPerFile = 65536;
inline constexpr size_t kTimeFiles = 4;  // 4 MiB; 7 hours of a stream that writes all the time

// Segments of one name in one directory. Not thread-safe.
class SegmentWriter {
 public:
  // Positions count units of `unit` bytes (1 for streams).
  SegmentWriter(std::string directory, std::string name, size_t files);
  ~SegmentWriter();
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;

  // Starts a new segment called NAME.POSITION.
  bool Rotate(int64_t position);
  bool open() const { return fd_ >= 0; }
  int64_t size() const { return size_; }
  // Returns the bytes written, fewer on an error.
  int64_t Append(std::string_view data);
  bool OverwriteTail(std::string_view data);

 private:
  const std::string directory_;
  const std::string name_;
  const size_t files_;
  std::deque<int64_t> positions_;
  int fd_ = -1;
  int64_t size_ = 0;
};

enum class OutputStream : int { kStdout = 0, kStderr = 1 };

class LogWriter {
 public:
  LogWriter(const std::string& directory, int64_t file_bytes, int64_t files);
  // `now_ms`: unix milliseconds. If the clock is set back, times go back.
  void Append(OutputStream stream, std::string_view data, int64_t now_ms);
  int64_t dropped_bytes() const { return dropped_; }
  bool written() const { return offsets_[0] + offsets_[1] > 0; }

 private:
  int64_t AppendToStream(SegmentWriter& segments, int64_t offset, std::string_view data);
  void RecordOrder(OutputStream stream);
  void RecordTime(OutputStream stream, int64_t now_ms);

  const int64_t file_bytes_;
  SegmentWriter streams_[2];
  int64_t offsets_[2] = {0, 0};
  SegmentWriter order_;
  int64_t order_records_ = 0;
  int last_stream_ = -1;
  struct Times {
    SegmentWriter segments;
    int64_t records = 0;
    int64_t last_ms = 0;  // of the last record
  };
  Times times_[2];
  int64_t dropped_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_LOG_WRITER_H_
