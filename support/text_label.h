// Any text as labels of a job: what the Slurm commands write, and whoever else reads it. A text of
// letters, digits, '-' and '_' is the label itself; another one is "e." and the text with every
// other byte as ".HH", in pieces of 63 bytes under KEY, KEY-1, KEY-2...
#ifndef BERTH_SUPPORT_TEXT_LABEL_H_
#define BERTH_SUPPORT_TEXT_LABEL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

namespace berth {

// The account of `sbatch --account`.
inline constexpr char kSlurmAccountLabel[] = "slurm/account";

// The labels for the text, as (key, value); none for "".
std::vector<std::pair<std::string, std::string>> TextLabels(const std::string& key,
                                                            const std::string& text);
// The text under that key; "" if there is none. `find`: the value of a label; null: it has none.
std::string TextInLabels(const std::string& key,
                         absl::FunctionRef<const std::string*(const std::string& key)> find);

}  // namespace berth

#endif  // BERTH_SUPPORT_TEXT_LABEL_H_
