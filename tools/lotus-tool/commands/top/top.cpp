#include "commands/top/top.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <thread>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "commands/top/live_runs.hpp"
#include "commands/top/metrics/openmetrics.hpp"
#include "commands/top/terminal.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/view/threads_view.hpp"

namespace lotus::tool {
namespace {

/// Reads the runs repeatedly, with pauses between the reads to limit the CPU time.
class run_poller {
 public:
  run_poller(const top_options& options)
      : runs_(options.dirs, options.prefix, options.window_ns), between_ns_(options.interval_ns) {}

  void poll(std::size_t chosen) {
    constexpr std::int64_t pause_factor = 70;
    const std::int64_t began_ns = time_of(CLOCK_MONOTONIC);
    const std::int64_t before_ns = time_of(CLOCK_PROCESS_CPUTIME_ID);
    runs_.look(chosen);
    const std::int64_t took_ns = time_of(CLOCK_PROCESS_CPUTIME_ID) - before_ns - runs_.judging_ns();
    next_ns_ = began_ns + std::max(between_ns_, pause_factor * took_ns);
  }
  std::int64_t left_ns() const { return next_ns_ - time_of(CLOCK_MONOTONIC); }
  const std::vector<live_run>& runs() const noexcept { return runs_.all(); }
  bool needs_second_reading() const { return runs_.needs_second_reading(); }
  void pause() const {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::max<std::int64_t>(left_ns(), 0)));
  }

 private:
  live_runs runs_;
  std::int64_t between_ns_;
  std::int64_t next_ns_ = 0;
};

/// Returns the index of the first run that has a running process; 0 if there is none.
std::size_t first_running(const std::vector<live_run>& runs) {
  const auto at = std::find_if(runs.begin(), runs.end(), [](const live_run& run) {
    return run.state() == run_state::running;
  });
  return at == runs.end() ? 0 : static_cast<std::size_t>(at - runs.begin());
}

/// Returns what the threads of a program without markers did; empty if there are no samples of it.
std::vector<std::string> lines_of_threads(const std::vector<std::string>& dirs,
                                          std::size_t columns) {
  const auto sampled = std::find_if(dirs.begin(), dirs.end(), has_thread_samples);
  if (sampled == dirs.end()) return {};
  try {
    diagnostic_log silent = diagnostic_log::silenced();
    const threads_view threads = read_threads(*sampled, silent);
    return printed_lines(columns, [&threads](std::ostream& out) {
      print_threads(threads, threads_part::summary, out);
    });
  } catch (const input_error&) {
    return {};  // a file without samples
  }
}

int show_once(run_poller& at, screen_state state, const top_options& options, std::ostream& out) {
  at.poll(0);
  state.chosen = first_running(at.runs());
  const bool again = at.needs_second_reading();
  if (again) at.pause();
  if (again || state.chosen != 0) at.poll(state.chosen);
  state.colours = has_colours(out);
  if (line_width(out) > 0) state.columns = line_width(out);
  if (at.runs().empty()) state.threads = lines_of_threads(options.dirs, state.columns);
  for (const std::string& line : draw_screen(at.runs(), state)) out << line << '\n';
  return exit_fine;
}

/// Handles a key. Returns false if this key quits the program.
bool press(char key, screen_state& state, std::size_t runs) {
  const std::size_t order = std::string_view("sctm").find(key);  // as in live_order
  if (order != std::string_view::npos) state.order = static_cast<live_order>(order);
  if (key == 'p' || key == ' ') state.paused = !state.paused;
  if (key == 'r') state.chosen = (state.chosen + 1) % std::max<std::size_t>(runs, 1);
  return key != 'q' && key != 'Q';
}

int show_until_stopped(run_poller& at, screen_state state, const top_options& options) {
  state.keys = true;
  at.poll(0);
  state.chosen = first_running(at.runs());
  bool chosen_by_hand = false;
  terminal screen;
  for (bool fresh = state.chosen != 0;;) {
    if (fresh || (!state.paused && at.left_ns() <= 0)) {
      at.poll(state.chosen);
      if (!chosen_by_hand && at.runs().size() > 1 &&
          at.runs()[state.chosen].state() != run_state::running) {
        state.chosen = first_running(at.runs());
      }
    }
    state.rows = screen.rows();
    state.columns = screen.columns();
    if (at.runs().empty() && state.threads.empty()) {
      state.threads = lines_of_threads(options.dirs, state.columns);
    }
    if (!screen.draw(draw_screen(at.runs(), state))) return exit_fine;
    char key = 0;
    constexpr std::int64_t long_ns = 3'600'000'000'000;
    const std::size_t before = state.chosen;
    switch (screen.wait(state.paused ? long_ns : at.left_ns(), key)) {
      case terminal_event::quit:
        return screen.signal() == 0 ? exit_fine : 128 + screen.signal();
      case terminal_event::key:
        if (!press(key, state, at.runs().size())) return exit_fine;
        break;
      case terminal_event::up:
        state.chosen -= state.chosen > 0 ? 1 : 0;
        break;
      case terminal_event::down:
        state.chosen += state.chosen + 1 < at.runs().size() ? 1 : 0;
        break;
      case terminal_event::nothing:
      case terminal_event::resized:
        break;
    }
    chosen_by_hand |= state.chosen != before;
    fresh = state.chosen != before;
  }
}

/// Writes the metrics file at every interval. Computing a verdict is expensive, so each update
/// computes the verdict of only one run, and the next update that of the next run.
int write_metrics(run_poller& at, const top_options& options, std::ostream& out) {
  at.poll(0);
  const bool again = at.needs_second_reading();
  if (again) at.pause();
  for (std::size_t i = again ? 0 : 1; i < at.runs().size(); ++i) at.poll(i);
  for (std::size_t update = 0;; ++update) {
    // commit() renames the complete file, so that a reader never sees a part of it.
    output_file file(options.metrics, out);
    file.write(openmetrics_text(at.runs()));
    file.commit();
    if (options.once) return exit_fine;
    at.pause();
    at.poll(update % std::max<std::size_t>(at.runs().size(), 1));
  }
}

}  // namespace

int run_top(const top_options& options, std::ostream& out, std::ostream&) {
  run_poller at(options);
  if (!options.metrics.empty()) return write_metrics(at, options, out);
  screen_state state;
  state.order = options.order;
  const bool drawn = !options.once && &out == &std::cout && terminal::is_there();
  if (!drawn) return show_once(at, state, options, out);
  state.colours = has_colours(out);
  return show_until_stopped(at, state, options);
}

}  // namespace lotus::tool
