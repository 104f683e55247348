// scontrol show.
#ifndef BERTH_CLIENTS_SLURM_SCONTROL_SHOW_H_
#define BERTH_CLIENTS_SLURM_SCONTROL_SHOW_H_

#include "clients/slurm/commands.h"

namespace berth {

struct ShowStyle {
  bool one_line = false;
  bool json = false;
};

int ShowJobs(SlurmContext& context, const Words& words, const ShowStyle& style);
int ShowNodes(SlurmContext& context, const Words& words, const ShowStyle& style);
int ShowPartitions(SlurmContext& context, const Words& words, const ShowStyle& style);
int ShowConfig(SlurmContext& context);
int Ping(SlurmContext& context);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_SCONTROL_SHOW_H_
