#include "commands/diagnose_ranks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "describe/description.hpp"
#include "log/folder/loaders.hpp"
#include "log/process_info.hpp"
#include "model/ranks/exposed_time.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

/// The ranks of one loader, with their numbers.
using loader_ranks = std::vector<std::pair<std::optional<std::uint64_t>, rank_times>>;

std::string host_of(const run_files& run) {
  const run_processes info = run_processes::read(run.info_dir, run.earlier_info);
  const process_info* const process =
      run.files.empty() ? nullptr : info.process_of(run.files.front().number);
  return process == nullptr ? "" : process->host;
}

std::map<std::string, loader_ranks> read_ranks(const std::vector<run_files>& runs,
                                               const diagnose_options& options,
                                               diagnostic_log& diagnostics) {
  std::map<std::string, loader_ranks> found;
  for (const run_files& run : runs) {
    for (const consumer_logs& logs : logs_of_consumers(run)) {
      const run_data data = read_run(logs.files, {}, diagnostics);
      if (!data.batches.waits_known()) {
        diagnostics.warning(run.dir + ": no waits for batches, so this rank is left out");
        continue;
      }
      rank_times rank = times_of_rank(data, options.skip_batches);
      rank.name = logs.rank ? "rank " + std::to_string(*logs.rank) : printable_line(run.dir);
      rank.host = printable_line(host_of(logs.files));
      rank.dir = run.dir;
      found[run.loader].emplace_back(logs.rank, std::move(rank));
    }
  }
  return found;
}

std::size_t batches_of(const rank_times& rank) {
  std::size_t sum = 0;
  for (const std::vector<rank_step>& epoch : rank.epochs) sum += epoch.size();
  return sum;
}

exposed_time compare(loader_ranks&& loader, diagnostic_log& diagnostics) {
  std::stable_sort(loader.begin(), loader.end(), [](const auto& a, const auto& b) {
    return a.first.value_or(UINT64_MAX) < b.first.value_or(UINT64_MAX);
  });
  std::size_t most = 0;
  for (const auto& [number, rank] : loader) most = std::max(most, batches_of(rank));
  std::vector<rank_times> ranks;
  ranks.reserve(loader.size());
  for (auto& [number, rank] : loader) {
    if (2 * batches_of(rank) < most) {
      // Only steps that all ranks have are compared.
      diagnostics.warning(rank.dir + ": " + std::to_string(batches_of(rank)) + " of " +
                          std::to_string(most) + " batches, so this rank is left out");
    } else {
      ranks.push_back(std::move(rank));
    }
  }
  return compare_exposed(ranks);
}

/// Returns why the cause waits so long for its batches.
std::string link_text(const exposed_time& e) {
  const exposed_rank& of = e.ranks[*e.cause];
  const exposed_rank& others = e.others;
  const auto against = [](double ns, double others_ns) {
    return human_time(ns) + " (others " + human_time(others_ns) + ")";
  };
  const auto part = [&](std::optional<double> exposed_rank::*value) {
    return against((of.*value).value_or(0), (others.*value).value_or(0));
  };
  if (e.link == rank_link::workers) {
    return "It has " + std::to_string(of.workers) + " workers (others " +
           std::to_string(others.workers) + ')';
  }
  if (e.link == rank_link::hand_over) {
    return "Its batches are received " + against(of.mean.ready_ns, others.mean.ready_ns) +
           " after they are ready";
  }
  std::string build =
      "Its workers take " + against(of.mean.build_ns, others.mean.build_ns) + " for a batch";
  if (e.link == rank_link::cpu) return build + ", of it on a CPU " + part(&exposed_rank::cpu_ns);
  if (e.link == rank_link::queue) {
    return build + ", of it waiting for a CPU " + part(&exposed_rank::queue_ns);
  }
  if (e.link == rank_link::blocked) {
    return build + ", of it blocked (disk, network, locks) " + part(&exposed_rank::blocked_ns);
  }
  return build;
}

std::string cause_text(const exposed_time& e) {
  if (e.ranks.size() < 2) return {};
  if (!e.in_step) {
    return "The ranks do not end their steps together, so none of them keeps the others waiting.";
  }
  if (!e.cause) return "Which rank waits longest may be chance.";
  const exposed_rank& of = e.ranks[*e.cause];
  return of.name + (of.host.empty() ? "" : " on " + of.host) + " causes " +
         human_time(of.caused_ns) + " of it: it waits longest in " +
         whole_percent(of.longest_share) + " of the steps. " + link_text(e) +
         " -> its consumer waits " + human_time(of.mean.wait_ns) + " (others " +
         human_time(e.others.mean.wait_ns) +
         ") -> the others wait for it in their steps, which take " +
         human_time(e.others.mean.step_ns) + " (its own " + human_time(of.mean.step_ns) + ").";
}

void print_table(const exposed_time& e, std::ostream& out) {
  constexpr std::size_t most_rows = 8;
  std::vector<std::size_t> order(e.ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&e](std::size_t a, std::size_t b) {
    return e.ranks[a].caused_ns > e.ranks[b].caused_ns;
  });
  const auto cell = [](std::optional<double> ns) { return ns ? human_time(*ns) : "-"; };
  table rows;
  rows.row({"rank", "host", "waits", "longest in", "causes", "builds in", "on CPU", "waits for CPU",
            "blocked", "ready before", "step"});
  for (std::size_t i = 0; i < std::min(most_rows, order.size()); ++i) {
    const exposed_rank& r = e.ranks[order[i]];
    rows.row({r.name, r.host, human_time(r.mean.wait_ns), whole_percent(r.longest_share),
              human_time(r.caused_ns), human_time(r.mean.build_ns), cell(r.cpu_ns),
              cell(r.queue_ns), cell(r.blocked_ns), human_time(r.mean.ready_ns),
              human_time(r.mean.step_ns)});
  }
  rows.spare({"host", "ready before", "waits for CPU", "on CPU", "blocked"});
  out << '\n';
  rows.print(out);
  if (order.size() > most_rows) {
    out << "Ranks not shown: " << order.size() - most_rows << " (--json shows them)\n";
  }
}

void print_exposed(const std::string& loader, const exposed_time& e, std::ostream& out) {
  const std::string headline =
      (loader.empty() ? "" : printable_line(loader) + ": ") + human_time(e.exposed_ns) +
      " of each step (" + whole_percent(e.cycle_ns > 0 ? e.exposed_ns / e.cycle_ns : 0) +
      ") is exposed preparation time: " +
      (e.ranks.size() == 1 ? "the rank waits"
                           : "the last of " + std::to_string(e.ranks.size()) + " ranks waits") +
      " for its batch, and nothing hides it.";
  out << styled(out, style::bold, fitted_sentences(out, headline)) << '\n';
  const std::string cause = cause_text(e);
  if (!cause.empty()) print_sentences(out, cause);
  print_table(e, out);
  if (e.cause) {
    const exposed_rank& of = e.ranks[*e.cause];
    out << "\nNext:  lotus-tool diagnose " << printable_line(shell_word(of.dir))
        << "  # the bottleneck of " << of.name << '\n';
  }
}

}  // namespace

void diagnose_ranks(const std::vector<run_files>& runs, const diagnose_options& options,
                    std::ostream& out, diagnostic_log& diagnostics) {
  std::vector<exposed_time> found;
  for (auto& [loader, ranks] : read_ranks(runs, options, diagnostics)) {
    exposed_time e = compare(std::move(ranks), diagnostics);
    e.loader = loader;
    if (e.steps == 0) {
      diagnostics.warning(options.dir + ": the ranks have no step in common");
    } else {
      found.push_back(std::move(e));
    }
  }
  if (found.empty()) throw input_error(options.dir + ": no waits of ranks for batches");
  if (options.json) return print_json(one_or_more(std::move(found)), out);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i > 0) out << '\n';
    print_exposed(found[i].loader, found[i], out);
  }
}

}  // namespace lotus::tool
