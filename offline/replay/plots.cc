#include "offline/replay/plots.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "offline/replay/gnuplot.h"

namespace berth::replay {
namespace {

// Colors that are distinct for any color vision (Okabe and Ito, 2008).
constexpr std::array<const char*, 7> kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                 "#E69F00", "#56B4E9", "#000000"};

std::string Text(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}, {"\n", " "}}), "'");
}

const char* ColourOf(size_t i) { return kColours[i % kColours.size()]; }

// The color of a line, and dashes once all colors have been used.
std::string Style(size_t i) {
  return absl::StrFormat("lw 2 lc rgb '%s' dt %d", ColourOf(i),
                         static_cast<int>(i / kColours.size()) + 1);
}

class Plotter {
 public:
  Plotter(const Workload& workload, const std::vector<PlottedRun>& runs, std::string folder)
      : workload_(workload), runs_(runs), folder_(std::move(folder)), axis_(AxisOf(runs)) {}

  absl::Status All() {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return absl::PermissionDeniedError(absl::StrCat(folder_, ": ", error.message()));
    for (const auto plot : {&Plotter::Utilisation, &Plotter::Waits, &Plotter::Slowdowns,
                            &Plotter::QueueShares, &Plotter::UserShares, &Plotter::Timeline}) {
      if (auto status = (this->*plot)(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Write(const std::string& name, const std::string& text) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (file) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be written"));
  }

  // Data of each run: NAME-SLUG.csv.
  template <class Csv>
  absl::Status WriteEach(const std::string& name, Csv&& csv) const {
    for (const PlottedRun& one : runs_) {
      if (auto status = Write(File(name, one), csv(one)); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  static std::string File(const std::string& name, const PlottedRun& run) {
    return absl::StrCat(name, "-", run.slug, ".csv");
  }

  // Runs the commands `body` twice: for PNG and SVG, with this size in pixels.
  absl::Status Draw(const std::string& name, int width, int height, const std::string& body) const {
    std::string script = "# gnuplot " + name + ".gp\nset datafile separator ','\n";
    for (const char* format : {"png", "svg"}) {
      const bool png = std::string(format) == "png";
      absl::StrAppendFormat(
          &script, "reset session\nset datafile separator ','\nset terminal %s size %d,%d %s\n",
          png ? "pngcairo" : "svg dynamic", width, height,
          png ? "noenhanced font 'sans,11' background rgb 'white'"
              : "noenhanced font 'sans,14' background rgb 'white'");
      absl::StrAppend(&script, "set output '", name, ".", format, "'\n",
                      "set border 3 lc rgb '#555555'\nset tics nomirror out\n",
                      "set grid lc rgb '#dddddd' lt 1 lw 1\n", body, "unset output\n");
    }
    if (auto status = Write(name + ".gp", script); !status.ok()) return status;
    return RunGnuplot(folder_, name + ".gp");
  }

  std::string TimeLabel() const {
    return absl::StrFormat("set xlabel 'time since the first submit (%s)'\nset xrange [0:%.9g]\n",
                           axis_.unit, axis_.end > 0 ? axis_.end : 1);
  }

  // "plot ... , ..." with a curve for each run.
  template <class Curve>
  std::string PlotEach(const std::string& name, Curve&& curve) const {
    std::string text = "plot ";
    for (size_t i = 0; i < runs_.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ", \\\n  ", Text(File(name, runs_[i])), " ",
                      curve(runs_[i], i));
    }
    return text + "\n";
  }

  absl::Status Utilisation() const {
    const auto csv = [&](const PlottedRun& one) { return UtilisationCsv(one.run.record, axis_); };
    if (auto status = WriteEach("utilisation", csv); !status.ok()) return status;
    const std::string resource = runs_.front().run.record.resource;
    std::string body = absl::StrCat(
        "set multiplot layout 2,1\n", TimeLabel(), "set key outside top center horizontal\n",
        "set lmargin 10\nset rmargin 3\nunset xlabel\n", "set ylabel ",
        Text(absl::StrCat(resource == "gpu" ? "GPUs" : "cores", " in use (%)")),
        "\nset yrange [0:103]\n");
    body += PlotEach("utilisation", [](const PlottedRun& one, size_t i) {
      return absl::StrCat("using 1:2 skip 1 with lines ", Style(i), " title ", Text(one.name));
    });
    absl::StrAppend(&body, TimeLabel(),
                    "unset key\nset ylabel 'waiting jobs'\nset yrange [0:1<*]\n");
    body += PlotEach("utilisation", [](const PlottedRun&, size_t i) {
      return absl::StrCat("using 1:4 skip 1 with lines ", Style(i), " notitle");
    });
    return Draw("utilisation", 1200, 760, body + "unset multiplot\n");
  }

  // The smallest visible value above 0 per cent: one job of the largest run.
  double LeastPercent() const {
    size_t jobs = 1;
    for (const PlottedRun& one : runs_) jobs = std::max(jobs, one.run.outcomes.size());
    return 100 / static_cast<double>(jobs);
  }

  // Jobs at or below each value, and a second panel with those above on a logarithmic axis, which
  // shows the rest if nearly all are alike. A dot marks the beginning of a curve, where many jobs
  // may be.
  absl::Status Distribution(const std::string& name, const std::string& label,
                            const std::string& least) const {
    const std::string at = absl::StrCat("using ($1<", least, "?", least, ":$1):");
    const double floor = LeastPercent() / 2;
    std::string body =
        absl::StrCat("set multiplot layout 2,1\nset lmargin 12\nset rmargin 3\nset logscale x\n",
                     "set format x '%.0s%c'\nset xrange [", least, ":10<*]\nset key bottom right\n",
                     "set ylabel 'jobs at or below (%)'\nset yrange [0:101]\n");
    const auto panel = [&](const std::string& y, bool titles) {
      body += PlotEach(name, [&](const PlottedRun& one, size_t i) {
        return absl::StrCat(
            at, y, " skip 1 with steps ", Style(i), " ",
            titles ? "title " + Text(one.name) : "notitle", ", \\\n  ", Text(File(name, one)), " ",
            at, y, " skip 1 every ::0::0 with points pt 7 lc rgb '", ColourOf(i), "' notitle");
      });
    };
    panel("2", true);
    absl::StrAppendFormat(&body,
                          "set xlabel %s\nset logscale y\nset format y '%%g'\n"
                          "set ylabel 'jobs above (%%)'\nset yrange [%.3g:101]\n",
                          Text(label), floor);
    panel(absl::StrFormat("($3>0?$3:%.3g)", floor), false);
    return Draw(name, 1000, 900, body + "unset multiplot\n");
  }

  absl::Status Waits() const {
    const auto csv = [&](const PlottedRun& one) { return WaitCsv(workload_, one.run); };
    if (auto status = WriteEach("wait", csv); !status.ok()) return status;
    return Distribution("wait", "wait (seconds; 1 includes shorter waits)", "1");
  }

  absl::Status Slowdowns() const {
    const auto csv = [&](const PlottedRun& one) { return SlowdownCsv(workload_, one.run); };
    if (auto status = WriteEach("slowdown", csv); !status.ok()) return status;
    return Distribution("slowdown", "bounded slowdown (10 s)", "1");
  }

  // A panel for each run, one under the other.
  int PanelsHeight(int each) const { return 60 + each * static_cast<int>(runs_.size()); }
  std::string Panels() const {
    return absl::StrFormat("set multiplot layout %d,1\n", static_cast<int>(runs_.size()));
  }

  absl::Status Shares(const std::string& name, OwnerKind kind) const {
    const std::vector<std::string> owners = ShownOwners(runs_, kind);
    const auto csv = [&](const PlottedRun& one) { return SharesCsv(one.run, kind, owners, axis_); };
    if (auto status = WriteEach(name, csv); !status.ok()) return status;
    std::string body =
        absl::StrCat(Panels(), TimeLabel(), "set key outside right center vertical Left reverse\n",
                     "set ylabel 'dominant share (%)'\nset yrange [0:103]\n");
    for (const PlottedRun& one : runs_) {
      absl::StrAppend(&body, "set title ", Text(one.name), "\nplot ");
      for (size_t i = 0; i < owners.size(); ++i) {
        absl::StrAppend(&body, i == 0 ? "" : ", \\\n  ", Text(File(name, one)), " using 1:", i + 2,
                        " skip 1 with lines ", Style(i), " title ",
                        Text(owners[i].empty() ? "-" : owners[i]));
      }
      body += "\n";
    }
    return Draw(name, 1200, PanelsHeight(340), body + "unset multiplot\n");
  }
  absl::Status QueueShares() const { return Shares("shares", OwnerKind::kQueue); }
  // Only if the workload has users.
  absl::Status UserShares() const {
    const auto& users = runs_.front().run.users;
    const bool any = users.size() > 1 || (users.size() == 1 && !users.front().name.empty());
    return any ? Shares("user-shares", OwnerKind::kUser) : absl::OkStatus();
  }

  // Names of rows, as many as can be read.
  static std::string RowTics(const TimelineRows& rows) {
    constexpr size_t kNames = 32;
    const size_t every = (rows.names.size() + kNames - 1) / kNames;
    std::string tics = "set ytics (";
    for (size_t i = 0; i < rows.names.size(); i += every) {
      absl::StrAppend(&tics, i == 0 ? "" : ", ", Text(rows.names[i]), " ", i);
    }
    return absl::StrFormat("%s) font ',9'\nset yrange [%d.5:-0.5]\nset ylabel %s\n", tics,
                           static_cast<int>(rows.names.size()) - 1, Text(rows.what));
  }

  absl::Status Timeline() const {
    const TimelineRows rows = RowsOf(runs_.front().run.record);
    const bool spans = rows.what == "GPU";
    const auto csv = [&](const PlottedRun& one) {
      const Record& record = one.run.record;
      return spans ? SpansCsv(workload_, record, rows, axis_) : HeatCsv(record, rows, axis_);
    };
    if (auto status = WriteEach("timeline", csv); !status.ok()) return status;
    std::string body = absl::StrCat(Panels(), TimeLabel(), "unset key\nset lmargin 16\n",
                                    RowTics(rows), spans ? "" : HeatStyle());
    if (spans) {
      body += "colour(n) = word('0x0072B2 0xD55E00 0x009E73 0xCC79A7 0xE69F00 0x56B4E9', ";
      body += "int(n) % 6 + 1) + 0\nset style fill solid 0.85 border rgb 'white'\n";
    }
    for (const PlottedRun& one : runs_) {
      absl::StrAppend(&body, "set title ", Text(one.name), "\nplot ", Text(File("timeline", one)),
                      spans ? " using 1:3:1:2:($3-0.42):($3+0.42):(colour($4)) skip 1 "
                              "with boxxyerror lc rgb variable\n"
                            : HeatPlot(rows));
    }
    const int each = 130 + 10 * static_cast<int>(std::min(rows.names.size(), kMaxShownRows));
    return Draw("timeline", 1200, PanelsHeight(std::max(each, 260)), body + "unset multiplot\n");
  }

  // gnuplot does not draw an image of one row.
  std::string HeatPlot(const TimelineRows& rows) const {
    if (rows.names.size() > 1) return " using 1:2:3 skip 1 with image pixels\n";
    return absl::StrFormat(
        " using 1:2:($1-%.9g):($1+%.9g):($2-0.5):($2+0.5):3 skip 1 with boxxyerror fs solid "
        "noborder lc palette\n",
        axis_.end / kPlotSteps / 2, axis_.end / kPlotSteps / 2);
  }

  // Light to dark; gray if no node was up.
  static std::string HeatStyle() {
    return "set palette defined (0 '#ffffe5', 25 '#c7e9b4', 50 '#41b6c4', 75 '#225ea8', "
           "100 '#081d58')\nset cbrange [0:100]\nset cblabel 'in use (%)'\nunset grid\n"
           "set object 1 rectangle from graph 0,0 to graph 1,1 behind fc rgb '#bbbbbb' "
           "fs solid noborder\n";
  }

  const Workload& workload_;
  const std::vector<PlottedRun>& runs_;
  const std::string folder_;
  const TimeAxis axis_;
};

}  // namespace

std::vector<std::string> SlugsOf(const std::vector<std::string>& names) {
  std::vector<std::string> slugs;
  std::set<std::string> taken;
  for (const std::string& name : names) {
    std::string slug = name;
    for (char& c : slug) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
    }
    const std::string stem = slug;
    for (int i = 2; !taken.insert(slug).second; ++i) slug = absl::StrCat(stem, "-", i);
    slugs.push_back(slug);
  }
  return slugs;
}

absl::Status Plot(const Workload& workload, const std::vector<PlottedRun>& runs,
                  const std::string& folder) {
  return Plotter(workload, runs, folder).All();
}

}  // namespace berth::replay
