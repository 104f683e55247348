#include "clients/agent/supervisor/notify.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "clients/agent/supervisor/text_fields.h"

namespace berth {
namespace {

constexpr int64_t kNoticeIntervalNs = 1'000'000'000 / kNoticesPerSecond;

// Digits only, as systemd takes them.
std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || text.front() == '-') return std::nullopt;
  return value;
}

// As in berth.v1.Checkpoint.Where.
std::optional<int64_t> CheckpointPlace(std::string_view text) {
  constexpr std::array<std::string_view, 4> kPlaces = {"", "local", "peer", "shared"};
  const auto* found = std::find(kPlaces.begin() + 1, kPlaces.end(), text);
  if (found == kPlaces.end()) return std::nullopt;
  return found - kPlaces.begin();
}

// Removes the first field of a comma-separated list, and returns it.
std::string_view NextOfList(std::optional<std::string_view>* list) {
  const size_t comma = (*list)->find(',');
  const std::string_view field = (*list)->substr(0, comma);
  if (comma == std::string_view::npos)
    list->reset();
  else
    (*list)->remove_prefix(comma + 1);
  return field;
}

std::optional<NoticeCheckpoint> ParseCheckpoint(std::string_view text) {
  std::optional<std::string_view> rest = text;
  NoticeCheckpoint checkpoint;
  std::optional<int64_t> value = WholeNumber(NextOfList(&rest));
  if (!value) return std::nullopt;
  checkpoint.step = *value;
  if (!rest) return checkpoint;
  value = CheckpointPlace(NextOfList(&rest));
  if (!value) return std::nullopt;
  checkpoint.where = *value;
  if (!rest) return checkpoint;
  value = WholeNumber(*rest);
  if (!value) return std::nullopt;
  checkpoint.bytes = *value;
  return checkpoint;
}

// For a field that keeps what it has if the new value is invalid.
template <class Value>
void SetIfValid(std::optional<Value> value, std::optional<Value>* field, bool* invalid) {
  if (value)
    *field = value;
  else
    *invalid = true;
}

void SetFlag(std::string_view value, bool* field, bool* invalid) {
  (value == "1" ? *field : *invalid) = true;
}

void ParseLine(std::string_view line, Notice* notice) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view name = line.substr(0, equals);
  const std::string_view value = line.substr(equals + 1);
  if (name == "READY") return SetFlag(value, &notice->ready, &notice->invalid);
  if (name == "STOPPING") return SetFlag(value, &notice->stopping, &notice->invalid);
  if (name == "WATCHDOG") return SetFlag(value, &notice->watchdog, &notice->invalid);
  if (name == "STATUS") notice->status = PrintableText(value, kMaxStatusTextBytes);
  if (name == "EXTEND_TIMEOUT_USEC")
    SetIfValid(WholeNumber(value), &notice->extend_us, &notice->invalid);
  if (name == "X_BERTH_STEP") SetIfValid(WholeNumber(value), &notice->step, &notice->invalid);
  if (name == "X_BERTH_STEP_TIME_US")
    SetIfValid(WholeNumber(value), &notice->step_time_us, &notice->invalid);
  if (name == "X_BERTH_CHECKPOINT")
    SetIfValid(ParseCheckpoint(value), &notice->checkpoint, &notice->invalid);
}

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: not UTF-8
};

// The first character of a text that is not empty. Overlong forms, surrogates and codes above
// U+10FFFF are not UTF-8.
Character FirstCharacter(std::string_view text) {
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const auto byte = [text](size_t i) { return static_cast<uint32_t>(text[i]) & 0xff; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead >= 0xf8 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {};
  return {code, bytes};
}

bool IsControl(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

bool SetNoticesField(std::string_view key, std::string_view value, Notices* notices) {
  const auto checkpoint = [notices]() -> NoticeCheckpoint& {
    if (!notices->checkpoint) notices->checkpoint.emplace();
    return *notices->checkpoint;
  };
  if (key == "ready") notices->ready = value == "1";
  if (key == "stopping") notices->stopping = value == "1";
  if (key == "status") notices->status = PrintableText(value, kMaxStatusTextBytes);
  if (key == "step") notices->step = FieldNumber(value);
  if (key == "step_time_us") notices->step_time_us = FieldNumber(value);
  if (key == "checkpoint_step") checkpoint().step = FieldNumber(value);
  if (key == "checkpoint_where") checkpoint().where = FieldNumber(value);
  if (key == "checkpoint_bytes") checkpoint().bytes = FieldNumber(value);
  if (key == "progress_ns") notices->progress_ns = FieldNumber(value);
  if (key == "not_before_ns") notices->not_before_ns = FieldNumber(value);
  if (key == "dropped") notices->dropped = FieldNumber(value);
  return true;
}

}  // namespace

std::string PrintableText(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    const Character next = FirstCharacter(text);
    const size_t bytes = std::max<size_t>(next.bytes, 1);
    const bool printable = next.bytes > 0 && !IsControl(next.code);
    const std::string_view shown = printable ? text.substr(0, bytes) : "?";
    if (out.size() + shown.size() > most) break;
    out.append(shown);
    text.remove_prefix(bytes);
  }
  return out;
}

// Some programs send the NUL that ends their string.
Notice ParseNotice(std::string_view datagram) {
  Notice notice;
  if (!datagram.empty() && datagram.back() == '\0') datagram.remove_suffix(1);
  if (datagram.find('\0') != std::string_view::npos) {
    notice.invalid = true;
    return notice;
  }
  while (!datagram.empty()) {
    const size_t end = std::min(datagram.find('\n'), datagram.size());
    ParseLine(datagram.substr(0, end), &notice);
    datagram.remove_prefix(std::min(end + 1, datagram.size()));
  }
  return notice;
}

void AddNotice(const Notice& notice, int64_t now_ns, Notices* sum) {
  const bool other_step = notice.step && notice.step != sum->step;
  const bool progress =
      notice.watchdog || notice.checkpoint || other_step || (notice.ready && !sum->ready);
  if (progress) sum->progress_ns = now_ns;
  sum->ready |= notice.ready;
  sum->stopping |= notice.stopping;
  if (notice.status) sum->status = *notice.status;
  if (notice.step) sum->step = notice.step;
  if (notice.step_time_us) sum->step_time_us = *notice.step_time_us;
  if (notice.checkpoint) sum->checkpoint = notice.checkpoint;
  if (notice.extend_us)
    sum->not_before_ns = now_ns + std::min(*notice.extend_us, kMaxExtensionUs) * 1000;
  if (notice.invalid) ++sum->dropped;
}

std::string EncodeNotices(const Notices& notices) {
  std::string out;
  PutField(&out, "ready", notices.ready ? 1 : 0);
  PutField(&out, "stopping", notices.stopping ? 1 : 0);
  PutField(&out, "status", notices.status);
  if (notices.step) PutField(&out, "step", *notices.step);
  PutField(&out, "step_time_us", notices.step_time_us);
  if (notices.checkpoint) {
    PutField(&out, "checkpoint_step", notices.checkpoint->step);
    PutField(&out, "checkpoint_where", notices.checkpoint->where);
    PutField(&out, "checkpoint_bytes", notices.checkpoint->bytes);
  }
  PutField(&out, "progress_ns", notices.progress_ns);
  PutField(&out, "not_before_ns", notices.not_before_ns);
  PutField(&out, "dropped", notices.dropped);
  return out;
}

bool DecodeNotices(std::string_view text, Notices* notices) {
  *notices = {};
  return ForEachField(text, [notices](std::string_view key, std::string_view value) {
    return SetNoticesField(key, value, notices);
  });
}

bool NoticeLimit::Take(int64_t now_ns) {
  const int64_t used = std::max(used_until_ns_, now_ns);
  if (used - now_ns > (kNoticeBurst - 1) * kNoticeIntervalNs) return false;
  used_until_ns_ = used + kNoticeIntervalNs;
  return true;
}

}  // namespace berth
