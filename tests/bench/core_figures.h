// Figures of one run, taken in a process of its own, so that memory is that of this run alone and
// no run profits from what another left behind.
#ifndef BERTH_TESTS_BENCH_CORE_FIGURES_H_
#define BERTH_TESTS_BENCH_CORE_FIGURES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/bench.h"

namespace berth::bench {

using Figures = std::map<std::string, double>;

// What `measure` returns, run in a forked child; `measure` touches nothing but what it makes
// itself. A child that ends otherwise ends the program.
Figures InOwnProcess(const std::function<Figures()>& measure);

// `runs` times InOwnProcess, one after the other; once with --quick.
std::vector<Figures> Runs(const Options& options, int runs,
                          const std::function<Figures()>& measure);

// The median of every figure; that of `value` as the row's, with its least and greatest.
Row FiguresRow(std::string name, std::string unit, const std::string& value,
               const std::vector<Figures>& runs);

double Median(std::vector<double> values);  // not empty

// MiB resident of this process, now.
double OwnResidentMib();

}  // namespace berth::bench

#endif  // BERTH_TESTS_BENCH_CORE_FIGURES_H_
