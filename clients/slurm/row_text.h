// Lines of columns.
#ifndef BERTH_CLIENTS_SLURM_ROW_TEXT_H_
#define BERTH_CLIENTS_SLURM_ROW_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace berth {

// The text in a column of that width, cut or padded with blanks; with width 0 as it is. `mark`, if
// any, takes the last place of a text that was cut.
std::string InWidth(absl::string_view text, int width, bool right, char mark = 0);
// Without blanks at its end.
std::string Trimmed(std::string line);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_ROW_TEXT_H_
