// The options of each command.
#ifndef BERTH_CLIENTS_SLURM_OPTION_TABLES_H_
#define BERTH_CLIENTS_SLURM_OPTION_TABLES_H_

#include <vector>

#include "clients/slurm/options.h"

namespace berth {

// For the tables.
inline constexpr Takes kFlag = Takes::kNothing;
inline constexpr Takes kValue = Takes::kValue;
inline constexpr Takes kMaybe = Takes::kMaybe;
inline constexpr Fate kDone = Fate::kDone;
inline constexpr Fate kRefused = Fate::kRefused;
inline constexpr Fate kNoMeaning = Fate::kNoMeaning;

const SlurmCommand& SbatchCommand();  // options_submit.cc
const SlurmCommand& SrunCommand();
const SlurmCommand& SallocCommand();
const SlurmCommand& SqueueCommand();  // options_query.cc
const SlurmCommand& SacctCommand();
const SlurmCommand& SinfoCommand();
const SlurmCommand& ScancelCommand();
const SlurmCommand& ScontrolCommand();
const SlurmCommand& SshareCommand();
const SlurmCommand& SprioCommand();
const SlurmCommand& SacctmgrCommand();
const SlurmCommand& SstatCommand();

// In the order of the reference page.
std::vector<const SlurmCommand*> AllSlurmCommands();

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_OPTION_TABLES_H_
