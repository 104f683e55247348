// Job numbers: a job's number is its uid, an index of an array is NUMBER_INDEX.
#ifndef BERTH_CLIENTS_SLURM_NUMBERS_H_
#define BERTH_CLIENTS_SLURM_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/client.h"

namespace berth {

struct JobNumber {
  uint64_t uid = 0;
  std::optional<int64_t> index;  // of an array
};

// "123", "123_4", "123_[1-3,7]" or "123+0"'s 123: one entry for each index. A step, "123.0" or
// "123.batch", is its job if `steps`. INVALID_ARGUMENT otherwise, also for 100,000 indexes or more.
absl::StatusOr<std::vector<JobNumber>> ParseJobNumbers(absl::string_view text, bool steps = false);

// The job; NOT_FOUND with the number in Slurm's words.
absl::StatusOr<v1::Job> JobByNumber(Client& client, const JobNumber& number);
// Its number for people: "123_4" for a member of an array.
std::string NumberOf(const v1::Job& job);
// The number of the array that made the job; 0: none. From its name, job-UID.INDEX, as its members
// do not have the array's uid.
uint64_t ArrayOf(const v1::Job& job);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_NUMBERS_H_
