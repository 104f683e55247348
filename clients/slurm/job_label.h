// What squeue and sacct show of a Slurm job and Berth has no field for: labels, which lists return.
#ifndef BERTH_CLIENTS_SLURM_JOB_LABEL_H_
#define BERTH_CLIENTS_SLURM_JOB_LABEL_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "berth/v1/job.pb.h"
#include "support/text_label.h"

namespace berth {

// "slurm/name", "slurm/account" ...: kinds of text that a job has.
inline constexpr char kNameLabel[] = "slurm/name";
inline constexpr const char* kAccountLabel = kSlurmAccountLabel;
inline constexpr char kPartitionLabel[] = "slurm/partition";
inline constexpr char kQosLabel[] = "slurm/qos";
inline constexpr char kTasksLabel[] = "slurm/tasks";  // --ntasks
inline constexpr size_t kMostLabelText = 256;

// Writes any text, also one that is no label (support/text_label.h). INVALID_ARGUMENT for more than
// kMostLabelText bytes.
absl::Status SetTextLabel(v1::JobSpec* spec, const std::string& key, const std::string& text);
// "" if there is none.
std::string TextLabel(const v1::JobSpec& spec, const std::string& key);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_LABEL_H_
