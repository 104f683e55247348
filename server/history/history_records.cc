#include "server/history/history_records.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/codec.h"
#include "storage/keys.h"

namespace berth {
namespace {

// Texts in keys end with a zero byte. Other zeros become 1 1, and ones 1 2: the order stays.
void AppendText(absl::string_view text, std::string* key) {
  for (const char c : text) {
    if (c > '\1' || c < '\0') {
      key->push_back(c);
      continue;
    }
    key->push_back('\1');
    key->push_back(c == '\0' ? '\1' : '\2');
  }
  key->push_back('\0');
}

bool TakeText(absl::string_view* key, std::string* text) {
  text->clear();
  for (size_t i = 0; i < key->size(); ++i) {
    const char c = (*key)[i];
    if (c == '\0') {
      key->remove_prefix(i + 1);
      return true;
    }
    if (c == '\1' && ++i == key->size()) return false;
    text->push_back(c != '\1' ? c : (*key)[i] == '\1' ? '\0' : '\1');
  }
  return false;
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the usage history: a damaged ", what));
}

void SetAmountTime(const absl::int128& sum, store::v1::HistoryMeter* out) {
  out->add_sums(absl::Int128Low64(sum));
  out->add_high(static_cast<uint64_t>(absl::Int128High64(sum)));
}

template <class M>
void SetMeter(const NamedMeter<M>& named, store::v1::HistoryMeter* out) {
  out->set_resource(named.resource);
  if (named.meter.AnyRate()) {
    for (const int64_t rate : named.meter.rate) out->add_rates(rate);
  }
  out->set_since_ms(named.meter.since_ms);
  for (const AmountTime& sum : named.meter.sum) SetAmountTime(sum, out);
  const auto& high = out->high();
  if (std::all_of(high.begin(), high.end(), [](uint64_t value) { return value == 0; })) {
    out->clear_high();
  }
}

template <class M>
bool GetMeter(const store::v1::HistoryMeter& in, NamedMeter<M>* out) {
  M& meter = out->meter;
  const auto rates = static_cast<size_t>(in.rates_size());
  const auto sums = static_cast<size_t>(in.sums_size());
  const auto high = static_cast<size_t>(in.high_size());
  const bool fits = (rates == 0 || rates == meter.rate.size()) && sums == meter.sum.size() &&
                    (high == 0 || high == sums);
  if (!fits) return false;
  out->resource = in.resource();
  for (size_t i = 0; i < rates; ++i) meter.rate[i] = in.rates(static_cast<int>(i));
  meter.since_ms = in.since_ms();
  for (size_t i = 0; i < sums; ++i) {
    const uint64_t upper = high == 0 ? 0 : in.high(static_cast<int>(i));
    meter.sum[i] = absl::MakeInt128(static_cast<int64_t>(upper), in.sums(static_cast<int>(i)));
  }
  return true;
}

// Whole minutes since 1970, so that the key is short.
uint32_t MinuteOf(int64_t begin_ms) { return static_cast<uint32_t>(begin_ms / kMsPerMinute); }

void AppendBytes(uint64_t number, int bytes, std::string* key) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    key->push_back(static_cast<char>((number >> shift) & 0xff));
  }
}

uint64_t BytesAt(absl::string_view key, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes && i < key.size(); ++i) {
    number = (number << 8) | static_cast<uint8_t>(key[i]);
  }
  return number;
}

}  // namespace

std::string PeriodKey(int64_t begin_ms) {
  std::string key;
  AppendBytes(MinuteOf(std::max<int64_t>(begin_ms, 0)), 4, &key);
  return key;
}

std::string UsageRowKey(int64_t begin_ms, const UsageKey& of, absl::string_view model) {
  std::string key = PeriodKey(begin_ms);
  static_assert(kFields<UsageKey> == 4);
  for (const absl::string_view text :
       {absl::string_view(of.queue), absl::string_view(of.user), absl::string_view(of.account),
        absl::string_view(of.priority_class), model}) {
    AppendText(text, &key);
  }
  return key;
}

std::string CapacityRowKey(int64_t begin_ms, absl::string_view model) {
  std::string key = PeriodKey(begin_ms);
  AppendText(model, &key);
  return key;
}

absl::StatusOr<ParsedRowKey> ParseUsageRowKey(absl::string_view key) {
  ParsedRowKey row;
  if (key.size() < 4) return Damaged("key");
  row.begin_ms = static_cast<int64_t>(BytesAt(key, 4)) * kMsPerMinute;
  key.remove_prefix(4);
  for (std::string* text :
       {&row.key.queue, &row.key.user, &row.key.account, &row.key.priority_class, &row.model}) {
    if (!TakeText(&key, text)) return Damaged("key");
  }
  return row;
}

absl::StatusOr<ParsedRowKey> ParseCapacityRowKey(absl::string_view key) {
  ParsedRowKey row;
  if (key.size() < 4) return Damaged("key");
  row.begin_ms = static_cast<int64_t>(BytesAt(key, 4)) * kMsPerMinute;
  key.remove_prefix(4);
  if (!TakeText(&key, &row.model)) return Damaged("key");
  return row;
}

std::string EndedKey(int64_t end_ms, JobId job) {
  std::string key;
  AppendBytes(static_cast<uint64_t>(std::max<int64_t>(end_ms, 0)), 8, &key);
  AppendBytes(job.value, 8, &key);
  return key;
}

int64_t EndOfKey(absl::string_view key) { return static_cast<int64_t>(BytesAt(key, 8)); }

template <class M>
std::string EncodeHistoryRow(bool open, const std::vector<NamedMeter<M>>& meters) {
  store::v1::HistoryRow row;
  row.set_open(open);
  for (const NamedMeter<M>& meter : meters) SetMeter(meter, row.add_meters());
  return row.SerializeAsString();
}
template std::string EncodeHistoryRow(bool, const std::vector<NamedMeter<UsageMeter>>&);
template std::string EncodeHistoryRow(bool, const std::vector<NamedMeter<CapacityMeter>>&);

template <class M>
absl::StatusOr<std::vector<NamedMeter<M>>> DecodeHistoryRow(absl::string_view value, bool* open) {
  thread_local store::v1::HistoryRow row;
  if (!row.ParseFromArray(value.data(), static_cast<int>(value.size()))) return Damaged("row");
  *open = row.open();
  std::vector<NamedMeter<M>> meters(static_cast<size_t>(row.meters_size()));
  for (int i = 0; i < row.meters_size(); ++i) {
    if (!GetMeter(row.meters(i), &meters[static_cast<size_t>(i)])) return Damaged("row");
  }
  return meters;
}
template absl::StatusOr<std::vector<NamedMeter<UsageMeter>>> DecodeHistoryRow(absl::string_view,
                                                                              bool*);
template absl::StatusOr<std::vector<NamedMeter<CapacityMeter>>> DecodeHistoryRow(absl::string_view,
                                                                                 bool*);

std::string EncodeHistoryJob(const UsageFold::StoredJobUsage& job) {
  store::v1::HistoryJob out;
  static_assert(kFields<UsageFold::StoredJobUsage> == 6 && kFields<JobLife> == 5);
  out.set_state(static_cast<uint32_t>(job.state));
  out.set_forced(job.forced);
  out.set_broken_by(static_cast<uint32_t>(job.broken_by));
  if (job.life.first_start != absl::InfinitePast()) {
    out.set_first_start_ns(absl::ToUnixNanos(job.life.first_start));
  }
  out.set_starts(job.life.starts);
  out.set_evictions(job.life.evictions);
  out.set_exit_code(job.life.exit_code);
  out.set_exit_signal(job.life.exit_signal);
  for (const int32_t pending : job.pending) out.add_pending(static_cast<uint32_t>(pending));
  for (const NamedMeter<UsageMeter>& meter : job.meters) SetMeter(meter, out.add_meters());
  return out.SerializeAsString();
}

absl::StatusOr<UsageFold::StoredJobUsage> DecodeHistoryJob(absl::string_view value) {
  store::v1::HistoryJob in;
  const bool parsed = in.ParseFromArray(value.data(), static_cast<int>(value.size()));
  if (!parsed || in.state() >= kJobStates || in.broken_by() > 2) return Damaged("job");
  UsageFold::StoredJobUsage job;
  job.state = static_cast<JobState>(in.state());
  job.forced = in.forced();
  job.broken_by = static_cast<Loss>(in.broken_by());
  if (in.has_first_start_ns()) job.life.first_start = absl::FromUnixNanos(in.first_start_ns());
  job.life.starts = in.starts();
  job.life.evictions = in.evictions();
  job.life.exit_code = in.exit_code();
  job.life.exit_signal = static_cast<uint8_t>(in.exit_signal());
  for (const uint32_t pending : in.pending()) job.pending.push_back(static_cast<int32_t>(pending));
  for (const store::v1::HistoryMeter& meter : in.meters()) {
    if (!GetMeter(meter, &job.meters.emplace_back())) return Damaged("job");
  }
  return job;
}

std::string EncodeHistoryTask(const PlacedTask& placed) {
  store::v1::HistoryTask out;
  static_assert(kFields<PlacedTask> == 5);
  out.set_task(EncodeTaskRecord(placed.task, ""));
  out.set_work_from_ms(placed.work_from_ms);
  out.set_frozen_ms(placed.frozen_ms);
  out.set_frozen_since_ms(placed.frozen_since_ms);
  out.set_stopped_by(static_cast<uint32_t>(placed.stopped_by));
  return out.SerializeAsString();
}

absl::StatusOr<PlacedTask> DecodeHistoryTask(absl::string_view key, absl::string_view value) {
  store::v1::HistoryTask in;
  const bool parsed = in.ParseFromArray(value.data(), static_cast<int>(value.size()));
  if (!parsed || in.stopped_by() > 2) return Damaged("task");
  absl::StatusOr<StoredTask> task = DecodeTaskRecord(key, in.task(), nullptr);
  if (!task.ok()) return task.status();
  return PlacedTask{.task = task->task,
                    .work_from_ms = in.work_from_ms(),
                    .frozen_ms = in.frozen_ms(),
                    .frozen_since_ms = in.frozen_since_ms(),
                    .stopped_by = static_cast<Loss>(in.stopped_by())};
}

std::string EncodeHistoryLabels(const std::map<std::string, std::string>& labels) {
  store::v1::HistoryLabels out;
  for (const auto& [key, value] : labels) (*out.mutable_labels())[key] = value;
  return out.SerializeAsString();
}

absl::StatusOr<std::map<std::string, std::string>> DecodeHistoryLabels(absl::string_view value) {
  store::v1::HistoryLabels in;
  if (!in.ParseFromArray(value.data(), static_cast<int>(value.size()))) return Damaged("labels");
  return std::map<std::string, std::string>(in.labels().begin(), in.labels().end());
}

}  // namespace berth
