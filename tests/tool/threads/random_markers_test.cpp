// Tests with random loaders where markers are suggested. A planted program says what its consumer
// did one thing after the other, and how often its workers were seen where; so it is known which
// call waits for a batch, which one builds it, and when neither is clear.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "built_samples.hpp"
#include "catch.hpp"
#include "support.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/suggested_markers.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;
using lotus::detail::wait_reason;

namespace {

/// The main thread runs `main`, which calls the loop over batches, which calls the loader, which
/// takes from a queue.
struct planted_loader {
  std::string takes = "Queue::pop";
  std::string loader = "Loader::next";
  std::string loop = "train";
  std::string consumer_file = "/home/user/prog.cpp";
  std::string worker_file = "/home/user/prog.cpp";
  /// What the consumer does: w: waits in the loop's line 9, v: waits in its line 10, t: runs in the
  /// loader, s: works in the loop's line 12, u: works for the loop's line 9, after the loader, m:
  /// works in main, z: sleeps in the loop.
  std::string does;
  int blocked_ms = 600;  ///< of the consumer's second
  int objects = 1;       ///< number of addresses at which the consumer waits
  enum class shape : std::uint8_t {
    loop,    ///< the workers' loop builds a batch
    task,    ///< it calls a task through the C++ library
    pool,    ///< code of a pool calls a lambda of the queue
    nested,  ///< as `pool`, but the function that contains the lambda runs it itself
    sorts    ///< as `pool`, but the lambda itself does the work, in the C++ library
  };
  shape built_by = shape::loop;
  // How often workers were seen.
  int builds = 0;            ///< running in the line that builds a batch
  int builds_also = 0;       ///< running in another line of the loop
  int runs_alone = 0;        ///< running in the loop itself
  int reads = 0;             ///< waiting for a file, in the line that builds a batch
  int waits_for_room = 0;    ///< waiting for the queue
  bool is_cut_off = false;   ///< whether the stacks do not reach the beginning of the thread
  bool shares_line = false;  ///< whether another thread runs the line that builds a batch
};

const std::string future = "std::future<int>::get";

std::string random_story(dice& random) {
  static const std::vector<std::string> rounds{"w",   "ws",   "wts",  "wtsu", "wu",  "wsm",
                                               "wm",  "wtm",  "vs",   "w",    "ws",  "wzs",
                                               "wsw", "wttt", "wsss", "wz",   "wtw", "wmm"};
  const std::string one = random.any_of(rounds);
  std::string story(static_cast<std::size_t>(random.below(6)), 'm');
  const int count = 8 + random.below(20);
  const int others = random.below(count);
  for (int i = 0; i < count; ++i) {
    if (i < others)
      story += random.one_in(2) ? "w" : "wt";
    else
      story += random.one_in(6) ? random.any_of(rounds) : one;
  }
  return story;
}

planted_loader random_loader(dice& random) {
  planted_loader of;
  of.does = random_story(random);
  if (random.one_in(4)) of.takes = random.any_of<std::string>({"take", "Queue::put", future});
  if (random.one_in(8)) of.loader = random.any_of<std::string>({"Loader::send", "fetch"});
  if (random.one_in(8)) of.loop = random.any_of<std::string>({"submit_all", "App::run"});
  const std::vector<std::string> files{"/home/user/prog.c", "", "/usr/include/x.hpp", ".c"};
  if (random.one_in(6)) of.consumer_file = random.any_of(files);
  if (random.one_in(6)) of.worker_file = random.one_in(3) ? of.consumer_file : random.any_of(files);
  if (random.one_in(4)) of.blocked_ms = 53 + 10 * random.below(12);
  if (of.takes == future) of.objects = 1 + random.below(2);
  if (!random.one_in(4)) of.builds = random.below(40);
  if (random.one_in(3)) of.builds_also = random.below(10);
  if (random.one_in(3)) of.runs_alone = random.below(10);
  if (random.one_in(2)) of.reads = random.below(30);
  if (random.one_in(2)) of.waits_for_room = random.below(30);
  using shape = planted_loader::shape;
  if (random.one_in(2)) {
    of.built_by = random.any_of<shape>({shape::task, shape::pool, shape::nested, shape::sorts});
  }
  of.is_cut_off = random.one_in(12);
  of.shares_line = random.one_in(12);
  return of;
}

/// Returns the calls of the consumer, the innermost first.
std::vector<call_line> calls_of(const planted_loader& of, char event) {
  const call_line main{"main", 2};
  switch (event) {
    case 'w':
      return {{of.takes, 3}, {of.loader, 25}, {of.loop, 9}, main};
    case 'v':
      return {{of.takes, 3}, {of.loader, 25}, {of.loop, 10}, main};
    case 't':
      return {{"transform", 1}, {of.loader, 26}, {of.loop, 9}, main};
    case 's':
      return {{"step", 1}, {of.loop, 12}, main};
    case 'u':
      return {{"use", 1}, {of.loop, 9}, main};
    case 'z':
      return {{of.loop, 13}, main};
    default:
      return {{"prepare", 1}, {"main", 3}};
  }
}

/// Returns the calls of a worker that does something for a batch, the innermost first.
std::vector<call_line> calls_of_worker(const planted_loader& of, const std::string& innermost) {
  const call_line task{"Queue::start::{lambda()#1}::operator()", 106};
  switch (of.built_by) {
    case planted_loader::shape::task:
      return {{innermost, 1},
              {"task", 106},
              {"std::function<void ()>::operator()", 0},
              {"work_loop", 105}};
    case planted_loader::shape::pool:
      return {{innermost, 1}, task, {"Pool::run", 4}, {"work_loop", 105}};
    case planted_loader::shape::nested:
      return {{innermost, 1}, task, {"Queue::start", 4}, {"work_loop", 105}};
    case planted_loader::shape::sorts:
      return {{"std::sort", 0}, task, {"Pool::run", 4}, {"work_loop", 105}};
    default:
      return {{innermost, 1}, {"work_loop", 106}};
  }
}

bool is_wait(char event) {
  return event == 'w' || event == 'v';
}

void add_consumer(const planted_loader& of, built_samples& to) {
  std::map<std::pair<char, int>, std::size_t> known;
  std::uint32_t now_ms = 0;
  int waits = 0;
  for (const char event : of.does) {
    now_ms += 10;
    const int object = is_wait(event) ? waits++ % of.objects : 0;
    const auto [at, is_new] = known.try_emplace({event, object}, to.samples.size());
    const std::vector<call_line> calls = calls_of(of, event);
    if (is_new && is_wait(event)) {
      to.waits(0, calls, 0, main_begins, wait_reason::condition, of.consumer_file).address =
          0x1000U + 8U * static_cast<unsigned>(object);
    } else if (is_new && event == 'z') {
      to.waits(0, calls, 0, main_begins, wait_reason::sleep, of.consumer_file);
    } else if (is_new) {
      to.runs(0, calls, 0, main_begins, of.consumer_file);
    }
    thread_sample& sample = to.samples[at->second];
    ++sample.count;
    if (!sample.waits) sample.at_ms.push_back(now_ms);
    if (!sample.waits) continue;
    const auto index = static_cast<std::int32_t>(at->second);
    to.rounds.push_back({now_ms, 2, {{0, index}, {1, sampled_round::runs}}});
  }
}

void add_worker(const planted_loader& of, built_samples& to) {
  const std::string begin = of.is_cut_off ? "" : thread_begins;
  const auto runs = [&](const std::vector<call_line>& calls, int count) {
    if (count > 0) to.runs(1, calls, count, begin, of.worker_file);
  };
  const auto waits = [&](const std::vector<call_line>& calls, int count, wait_reason reason) {
    if (count > 0) to.waits(1, calls, count, begin, reason, of.worker_file);
  };
  runs(calls_of_worker(of, "build"), of.builds);
  runs({{"build", 1}, {"work_loop", 107}}, of.builds_also);
  runs({{"work_loop", 105}}, of.runs_alone);
  waits(calls_of_worker(of, "read_all"), of.reads, wait_reason::file);
  waits({{of.takes == future ? "take" : of.takes, 4}, {"work_loop", 107}}, of.waits_for_room,
        wait_reason::sleep);
}

/// Returns what a recording of the program contains.
thread_samples recorded(const planted_loader& of) {
  built_samples to(1000);
  to.thread(1000 - of.blocked_ms);
  to.thread(500);
  add_consumer(of, to);
  add_worker(of, to);
  if (of.shares_line) {
    to.thread(100);
    to.runs(2, {{"build", 1}, {"work_loop", 106}, {"check", 4}}, 1, thread_begins, of.worker_file);
  }
  return std::move(to);
}

int count_of(const std::string& text, char wanted) {
  return static_cast<int>(std::count(text.begin(), text.end(), wanted));
}

/// The independent oracle.
class oracle {
 public:
  explicit oracle(const planted_loader& of) : of_(of) {}

  /// Returns the lines of the consumer and of the worker that get markers; empty if there are none.
  std::vector<call_line> answer() const {
    const int waits = count_of(of_.does, 'w') + count_of(of_.does, 'v');
    if (waits < 10) return {};
    const double share = 1.0 * waits / (waits + count_of(of_.does, 'z'));
    if (2 * waits < waits + count_of(of_.does, 'z')) return {};
    if (of_.blocked_ms * share < 100 || of_.is_cut_off) return {};
    if (of_.takes == future && of_.objects == 1) return {};  // the end of all work
    const std::size_t level = consuming_level();
    const bool is_rare = count_of(of_.does, 'w') < count_of(of_.does, 'v');
    const std::vector<call_line> calls = calls_of(of_, is_rare ? 'v' : 'w');
    const int votes = level == loop_level ? count_of(of_.does, is_rare ? 'v' : 'w') : waits;
    if (5 * votes < 4 * waits) return {};
    for (std::size_t i = 0; i <= level; ++i) {
      for (const char* word : {"put", "send", "submit"}) {
        if (calls[i].first.find(word) != std::string::npos) return {};
      }
    }
    if (!is_loop(calls, level)) return {};
    const call_line built = built_at();
    if (built.second == 0 || (of_.shares_line && built.second == 106)) return {};
    for (const std::string& file : {of_.consumer_file, of_.worker_file}) {
      if (file.empty() || file.rfind("/usr", 0) == 0) return {};
    }
    if (is_c(of_.consumer_file) != is_c(of_.worker_file)) return {};
    return {calls[level], built};
  }

  static bool is_c(const std::string& file) { return file == "/home/user/prog.c"; }

 private:
  static constexpr std::size_t loader_level = 1;
  static constexpr std::size_t loop_level = 2;
  static constexpr std::size_t main_level = 3;

  /// Returns the call in the function that works most of itself, if it works more than a fifth of
  /// the time; otherwise the caller of the class that waits.
  std::size_t consuming_level() const {
    const std::vector<int> work{0, count_of(of_.does, 't'),
                                count_of(of_.does, 's') + count_of(of_.does, 'u'),
                                count_of(of_.does, 'm')};
    const int all = work[1] + work[2] + work[3];
    // A wait for a std::future is in the loader itself, so it is the class that waits, if it is
    // one.
    const bool is_waiting_class = of_.takes == future;
    const bool loops_itself =
        is_waiting_class && class_of(of_.loader).empty() && work[loader_level] > 0;
    std::size_t best = is_waiting_class && !loops_itself ? loop_level : loader_level;
    int most = 0;
    for (std::size_t i = best; i <= main_level && all >= 5; ++i) {
      if (5 * work[i] > all && work[i] > most) best = i, most = work[i];
    }
    return best;
  }

  /// Returns whether the function did other things between its waits: once is enough if the call
  /// hardly works itself.
  bool is_loop(const std::vector<call_line>& calls, std::size_t level) const {
    std::string seen;  // w: waits in the call, i: works in it, o: elsewhere in the function
    int inside = 0;
    int outside = 0;
    for (const char event : of_.does) {
      const std::vector<call_line> now = calls_of(of_, event);
      const std::size_t from_end = calls.size() - level;
      const bool is_active =
          now.size() >= from_end && now[now.size() - from_end].first == calls[level].first;
      const bool is_at_line = is_active && now[now.size() - from_end] == calls[level];
      const bool is_in_call = is_at_line && now.size() > from_end &&
                              now[now.size() - from_end - 1].first == calls[level - 1].first;
      const bool in_future =
          is_at_line && level == loader_level && of_.takes == future && is_wait(event);
      if (is_wait(event) && (is_in_call || in_future)) {
        seen += 'w';
      } else if (is_active) {
        seen += is_in_call ? 'i' : 'o';
        if (event != 'z' && !is_wait(event)) ++(is_in_call ? inside : outside);
      } else {
        seen += 'r';
      }
    }
    static const std::regex change("wi*o");
    const auto changes = std::distance(std::sregex_iterator(seen.begin(), seen.end(), change),
                                       std::sregex_iterator());
    return changes >= (2 * inside > outside ? 3 : 1);
  }

  /// Returns the line in which at least 80 % of the workers' samples are; 0 if there is none. Those
  /// in which they wait for files count only if they were hardly seen running.
  call_line built_at() const {
    const int running = of_.builds + of_.builds_also + of_.runs_alone;
    if (running >= 10) return line_of(of_.builds, of_.builds_also, running);
    // Waits for the queue do not count, if its class is known.
    const int also = of_.builds_also + (is_of_queue() ? 0 : of_.waits_for_room);
    const bool in_queue = is_of_queue() && of_.built_by == planted_loader::shape::sorts;
    const int here = of_.builds + (in_queue ? 0 : of_.reads);
    return here + also < 10 ? call_line{} : line_of(here, also, here + also);
  }

  bool is_of_queue() const { return of_.takes.rfind("Queue::", 0) == 0; }

  call_line line_of(int here, int also, int all) const {
    if (5 * also >= 4 * all) return {"work_loop", 107};
    if (5 * here < 4 * all) return {};
    using shape = planted_loader::shape;
    if (of_.built_by == shape::task) return {"task", 106};
    if (of_.built_by == shape::loop) return {"work_loop", 106};
    if (of_.built_by == shape::pool && is_of_queue()) {
      return {"Queue::start::{lambda()#1}::operator()", 106};
    }
    return {"work_loop", 105};
  }

  const planted_loader& of_;
};

std::string shown(const std::vector<call_line>& lines) {
  std::string text;
  for (const call_line& one : lines) text += one.first + ':' + std::to_string(one.second) + ' ';
  return text.empty() ? "nothing" : text;
}

}  // namespace

TEST_CASE("in random loaders, markers are suggested at the calls that wait and build, or nowhere") {
  constexpr int count = support::rounds(10'000);
  dice random(77);
  int suggested = 0;
  for (int i = 0, faults = 0; i < count && faults < 10; ++i) {
    const planted_loader of = random_loader(random);
    const thread_samples samples = recorded(of);
    const named_stacks stacks(samples);
    const std::vector<suggested_marker> markers =
        suggested_markers(samples, stacks, activity_of(samples, stacks));
    std::vector<call_line> found;
    for (const suggested_marker& one : markers) {
      const call_line place{one.at.function, one.at.line};
      if (found.empty() || found.back() != place) found.push_back(place);
    }
    const std::vector<call_line> wanted = oracle(of).answer();
    suggested += wanted.empty() ? 0 : 1;
    if (!wanted.empty()) CHECK(markers.size() == (oracle::is_c(of.consumer_file) ? 4 : 3));
    if (found == wanted) continue;
    ++faults;
    FAIL_CHECK("loader " << i << ": " << shown(found) << "instead of " << shown(wanted) << '\n'
                         << of.does << ' ' << of.takes << ' ' << of.loader << ' ' << of.loop << ' '
                         << of.blocked_ms << ' ' << of.objects << ' ' << of.builds << ' '
                         << of.builds_also << ' ' << of.runs_alone << ' ' << of.reads << ' '
                         << of.waits_for_room << ' ' << of.consumer_file << ' ' << of.worker_file);
  }
  CHECK(suggested > count / 30);
}
