// Figures of one run in a separate process, so that memory is that of this run only and no run
// profits from an earlier one.
#ifndef BERTH_TESTS_BENCH_CORE_FIGURES_H_
#define BERTH_TESTS_BENCH_CORE_FIGURES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/bench.h"

namespace berth::bench {

using Figures = std::map<std::string, double>;

// Runs `measure` in a forked child and returns its result; `measure` may use only what it creates.
// The program ends if the child fails.
Figures InOwnProcess(const std::function<Figures()>& measure);

// Calls InOwnProcess `runs` times in sequence; once with --quick.
std::vector<Figures> Runs(const Options& options, int runs,
                          const std::function<Figures()>& measure);

// The median of every figure; for `value`, the value of the row, also minimum and maximum.
Row FiguresRow(std::string name, std::string unit, const std::string& value,
               const std::vector<Figures>& runs);

double Median(std::vector<double> values);  // not empty

// Resident memory of this process in MiB.
double OwnResidentMib();

}  // namespace berth::bench

#endif  // BERTH_TESTS_BENCH_CORE_FIGURES_H_
