#include <cmath>
#include <iomanip>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "colours.hpp"
#include "diagnose.hpp"
#include "diagnostics.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "names.hpp"
#include "table.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

std::string three_digits(double value) {
  if (!std::isfinite(value)) return "any number of";
  std::ostringstream text;
  text << std::setprecision(3) << (value >= 1000 ? std::round(value) : value);
  return value >= 1000 ? std::to_string(std::llround(value)) : text.str();
}

std::string rate(std::optional<double> per_second) {
  return per_second ? three_digits(*per_second) + " batches/s" : "unknown";
}

std::string workers_text(std::size_t n) {
  return std::to_string(n) + (n == 1 ? " worker" : " workers");
}

std::string_view because_text(unsteadiness because) {
  switch (because) {
    case unsteadiness::start_up:
      return "start-up: most of it is for the first batches of an epoch";
    case unsteadiness::stragglers:
      return "stragglers: most of it is for batches that took over twice the median";
    case unsteadiness::variance:
      return "variance: preprocess times differ and too little is prefetched to even them out";
    case unsteadiness::none:
      break;
  }
  return "";
}

std::string_view because_name(unsteadiness because) {
  switch (because) {
    case unsteadiness::start_up:
      return "start-up";
    case unsteadiness::stragglers:
      return "stragglers";
    case unsteadiness::variance:
      return "variance";
    case unsteadiness::none:
      break;
  }
  return "";
}

std::string number_or_null(std::optional<double> value) {
  return value ? json_number(*value) : "null";
}

void print_ops(const diagnosis& d, std::ostream& out) {
  if (d.ops.empty()) return;
  table ops;
  ops.row({"attack first", "share of the workers' time", "workers at most faster"});
  for (const op_share& op : d.ops) {
    ops.row({op.name, human_share(op.share),
             op.at_most_faster ? three_digits(*op.at_most_faster) + "x" : "-"});
  }
  out << '\n';
  ops.print(out);
}

void print_slow(const diagnosis& d, std::ostream& out) {
  for (const slow_worker& w : d.slow_workers) {
    out << "  slow worker " << w.worker << ": " << human_time(w.mean_ns) << " a batch, "
        << three_digits(w.slower_than) << " times the median worker's\n";
  }
  for (const slow_sample& s : d.slow_samples) {
    out << "  slow sample: " << printable_line(s.name) << " took "
        << human_time(static_cast<double>(s.duration_ns)) << " (median " << human_time(s.median_ns)
        << ") in batch " << s.batch << " of epoch " << s.epoch << ", worker " << s.worker << '\n';
  }
}

}  // namespace

std::string verdict_sentence(const diagnosis& d) {
  const std::string waits = "the consumer waits " + human_share(d.wait_share) + " of its time";
  std::string text(verdict_name(d.is));
  switch (d.is) {
    case verdict::consumer_bound:
      return text + ": " + waits + ", so faster preprocessing would gain next to nothing.";
    case verdict::preprocessing_bound:
      return text + ": " + waits + ", because " + workers_text(d.workers) + " can make " +
             rate(d.preprocessing_capacity) + " where the consumer could take " +
             rate(d.consumer_capacity) + ".";
    case verdict::order_bound:
      return text + ": " + waits + ", and during " + human_share(d.head_of_line_share) +
             " of that a later batch lay ready but not the next one.";
    case verdict::unsteady:
      break;
  }
  return text + ": " + waits + ", though the workers are fast enough on average (" +
         std::string(because_text(d.because)) + ").";
}

void print_diagnosis(const diagnosis& d, std::ostream& out) {
  out << printable_line(d.dir) << '\n' << styled(out, style::bold, verdict_sentence(d)) << "\n\n";
  table facts;
  facts.row({"batches", std::to_string(d.batches)});
  facts.row({"workers at once", std::to_string(d.workers)});
  facts.row({"waiting, all in all", human_time(d.wait_ns)});
  facts.row({"of it while a later batch lay ready", human_share(d.head_of_line_share)});
  facts.row({"consumer's steps, all in all", human_time(d.step_ns)});
  facts.row({"preprocessing a batch, mean", human_time(d.mean_preprocess_ns)});
  facts.row({"its standard deviation", human_time(d.std_preprocess_ns)});
  facts.row({"the workers alone could make", rate(d.preprocessing_capacity)});
  facts.row({"the consumer alone could take", rate(d.consumer_capacity)});
  if (d.samples_per_batch > 0) {
    facts.row({"the workers alone, samples/s",
               three_digits(*d.preprocessing_capacity * d.samples_per_batch)});
    if (d.consumer_capacity) {
      facts.row({"the consumer alone, samples/s",
                 three_digits(*d.consumer_capacity * d.samples_per_batch)});
    }
  }
  facts.print(out);
  print_ops(d, out);
  if (!d.slow_workers.empty() || !d.slow_samples.empty()) out << '\n';
  print_slow(d, out);
}

std::string diagnosis_json(const diagnosis& d) {
  std::string text = R"({"dir":)" + json_string(d.dir) + R"(,"verdict":")";
  text += verdict_name(d.is);
  text += '"';
  if (d.because != unsteadiness::none) {
    text += R"(,"because":")" + std::string(because_name(d.because)) + '"';
  }
  text += R"(,"sentence":)" + json_string(verdict_sentence(d)) + R"(,"wait_share":)" +
          json_number(d.wait_share) + R"(,"head_of_line_share":)" +
          json_number(d.head_of_line_share) + R"(,"preprocessing_capacity":)" +
          number_or_null(d.preprocessing_capacity) + R"(,"consumer_capacity":)" +
          number_or_null(d.consumer_capacity) + R"(,"workers":)" + std::to_string(d.workers) +
          R"(,"batches":)" + std::to_string(d.batches) + R"(,"samples_per_batch":)" +
          json_number(d.samples_per_batch) + R"(,"ops":[)";
  std::string_view before;
  for (const op_share& op : d.ops) {
    text += before;
    text += R"({"name":)" + json_string(op.name) + R"(,"share":)" + json_number(op.share) +
            R"(,"at_most_faster":)" + number_or_null(op.at_most_faster) + '}';
    before = ",";
  }
  text += R"(],"slow_samples":[)";
  before = "";
  for (const slow_sample& s : d.slow_samples) {
    text += before;
    text += R"({"name":)" + json_string(s.name) + R"(,"duration_ns":)" +
            std::to_string(s.duration_ns) + R"(,"median_ns":)" + json_number(s.median_ns) +
            R"(,"epoch":)" + std::to_string(s.epoch) + R"(,"index":)" + std::to_string(s.batch) +
            R"(,"worker":)" + std::to_string(s.worker) + '}';
    before = ",";
  }
  text += R"(],"slow_workers":[)";
  before = "";
  for (const slow_worker& w : d.slow_workers) {
    text += before;
    text += R"({"worker":)" + std::to_string(w.worker) + R"(,"mean_ns":)" + json_number(w.mean_ns) +
            R"(,"slower_than_median":)" + json_number(w.slower_than) + '}';
    before = ",";
  }
  return text + "]}";
}

int run_diagnose(const diagnose_options& options, std::ostream& out, std::ostream& err) {
  diagnostics said(err, options.quiet);
  std::vector<diagnosis> found;
  const std::vector<run_files> runs = find_runs(options.dir, options.prefix, said, 2);
  for (const run_files& run : runs) {
    try {
      found.push_back(diagnose_run(run, options.skip_batches, said));
    } catch (const input_error& error) {
      if (runs.size() == 1) throw;
      said.warning(error.what());
    }
  }
  const int status = said.finish(options.strict);
  if (status != exit_fine) return status;
  if (found.empty()) throw input_error(options.dir + ": no run that a verdict could be given for");
  if (options.json) {
    // One run is told as itself, several as a list of them.
    if (found.size() == 1) {
      out << diagnosis_json(found.front()) << '\n';
    } else {
      std::string_view before = "{\"runs\":[\n";
      for (const diagnosis& d : found) {
        out << before << diagnosis_json(d);
        before = ",\n";
      }
      out << "\n]}\n";
    }
  } else {
    std::string_view before;
    for (const diagnosis& d : found) {
      out << before;
      print_diagnosis(d, out);
      before = "\n";
    }
  }
  return exit_fine;
}

}  // namespace lotus::tool
