#include "server/services/cold_part.h"

#include "absl/status/statusor.h"
#include "server/convert/cold.h"
#include "server/validation/no_such.h"
#include "storage/codec.h"
#include "storage/keys.h"

namespace berth {
namespace {

absl::StatusOr<std::string> ReadBytes(const Store& store, JobId id, const std::string& name) {
  JobId series;
  const std::string key = JobKey(id);
  absl::StatusOr<std::string> record = store.Read(RecordKind::kJobSpec, key);
  if (absl::IsNotFound(record.status())) return NoSuchJob(name);
  if (!record.ok()) return record.status();
  absl::StatusOr<std::string> cold = DecodeCold(key, *record, &series);
  if (!cold.ok()) return store.NoteRead(cold.status());
  if (series != JobId{} && series != id) return ReadBytes(store, series, name);
  return cold;
}

}  // namespace

absl::Status ReadColdPart(const Store& store, JobId id, const std::string& name,
                          v1::JobSpec* cold) {
  const absl::StatusOr<std::string> bytes = ReadBytes(store, id, name);
  return bytes.ok() ? store.NoteRead(ParseCold(*bytes, cold)) : bytes.status();
}

absl::Status AddColdPart(const Store& store, v1::Job& job) {
  const absl::StatusOr<std::string> bytes = ReadBytes(store, JobId{job.uid()}, job.name());
  return bytes.ok() ? store.NoteRead(MergeCold(*bytes, job.mutable_spec())) : bytes.status();
}

}  // namespace berth
