#include "waits/join/blocked_on.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"
#include "model/calls/nesting_order.hpp"
#include "model/run_data.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/join/thread_logs.hpp"

namespace lotus::tool {
namespace {

// Waits for batches and preprocessing have no operation's name, so the code below uses these
// numbers for them instead of the number of a name. Numbers of names are much smaller.
constexpr std::uint32_t of_wait = UINT32_MAX;
constexpr std::uint32_t of_preprocessing = UINT32_MAX - 1;

/// The time of a sample. join_waits() determines which operations a thread had open at this time.
struct moment {
  std::int64_t time_ns = 0;
  std::size_t sample = 0;  ///< index in all samples
  bool of_holder = false;  ///< true: the thread holds the lock; false: the thread waits
};

/// The operations that were open at the time of a sample.
struct open_spans {
  std::set<std::uint32_t> names;
  std::int64_t holder_since_ns = INT64_MIN;  ///< start of the holder's innermost span
  std::uint32_t holder = 0;
  bool holder_known = false;
};

void visit(std::vector<moment>& moments, std::int64_t start_ns, std::int64_t end_ns,
           std::uint32_t name, std::vector<open_spans>& open) {
  auto at = std::lower_bound(moments.begin(), moments.end(), start_ns,
                             [](const moment& m, std::int64_t ns) { return m.time_ns < ns; });
  for (; at != moments.end() && at->time_ns < end_ns; ++at) {
    open_spans& of = open[at->sample];
    if (!at->of_holder) {
      of.names.insert(name);
    } else if (start_ns >= of.holder_since_ns) {
      of.holder_since_ns = start_ns;
      of.holder = name;
      of.holder_known = true;
    }
  }
}

std::string address_text(std::uint64_t address) {
  std::ostringstream text;
  text << "0x" << std::hex << address;
  return text.str();
}

/// Removes the address that follows a name, because an address does not help the user.
std::string without_address(const std::string& what) {
  const std::size_t at = what.rfind(" (0x");
  return at == std::string::npos || what.back() != ')' ? what : what.substr(0, at);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return path.substr(0, slash == std::string::npos ? 0 : slash + 1);
}

/// Groups the wait samples of one operation by what the operation waited for, and counts them.
class collector {
 public:
  void add(const wait_sample& sample, std::size_t process, const std::string& what,
           const std::string& held_by) {
    group& to = groups_[{sample.reason, what}];
    ++to.samples;
    to.ns += sample.ns;
    if (sample.reason == wait_reason::lock && !held_by.empty()) ++to.holders[held_by];
    if (sample.stack != 0) ++to.stacks[{process, sample.stack}];
  }

  blocked_list finish() {
    merge_files();
    blocked_list all;
    for (const auto& [key, of] : groups_) {
      all.samples += of.samples;
      all.ns += of.ns;
    }
    for (const auto& [key, of] : groups_) {
      blocked_on one;
      one.reason = key.first;
      one.what = key.second;
      one.samples = of.samples;
      one.ns = of.ns;
      one.share = static_cast<double>(of.samples) / static_cast<double>(all.samples);
      std::uint64_t known = 0;
      std::uint64_t most = 0;
      for (const auto& [name, count] : of.holders) {
        known += count;
        if (count > most) std::tie(most, one.held_by) = std::tie(count, name);
      }
      if (known > 0) one.held_share = static_cast<double>(most) / static_cast<double>(known);
      one.stacks = frequent_stacks(of.stacks);
      all.by.push_back(std::move(one));
    }
    std::stable_sort(all.by.begin(), all.by.end(), [](const blocked_on& a, const blocked_on& b) {
      return a.samples > b.samples;
    });
    return all;
  }

 private:
  struct group {
    std::uint64_t samples = 0;
    std::int64_t ns = 0;
    std::map<std::string, std::uint64_t> holders;
    std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> stacks;  // process and number
  };

  /// Returns the most frequent stacks. There may be thousands, which differ in unimportant words.
  static std::vector<seen_stack> frequent_stacks(const decltype(group::stacks)& stacks) {
    constexpr std::size_t max_stacks = 64;
    std::vector<seen_stack> all;
    for (const auto& [key, samples] : stacks) all.push_back({key.first, key.second, samples});
    std::stable_sort(all.begin(), all.end(), [](const seen_stack& a, const seen_stack& b) {
      return a.samples > b.samples;
    });
    if (all.size() > max_stacks) all.resize(max_stacks);
    return all;
  }

  /// If there are many files, combines the files of each folder into one entry, because a loader
  /// may read thousands of files from one folder.
  void merge_files() {
    constexpr std::size_t max_files = 3;
    std::map<std::string, std::size_t> files;
    for (const auto& [key, of] : groups_) {
      if (key.first == wait_reason::file) ++files[folder_of(key.second)];
    }
    std::map<std::pair<wait_reason, std::string>, group> merged;
    for (auto& [key, of] : groups_) {
      const std::string folder = folder_of(key.second);
      const bool many =
          key.first == wait_reason::file && !folder.empty() && files[folder] > max_files;
      group& to =
          merged[{key.first,
                  many ? folder + " (" + std::to_string(files[folder]) + " files)" : key.second}];
      to.samples += of.samples;
      to.ns += of.ns;
      for (const auto& [name, count] : of.holders) to.holders[name] += count;
      for (const auto& [stack, count] : of.stacks) to.stacks[stack] += count;
    }
    groups_ = std::move(merged);
  }

  std::map<std::pair<wait_reason, std::string>, group> groups_;
};

std::string held_name(const run_data& run, std::uint32_t name) {
  if (name == of_wait) return "waiting for a batch";
  if (name == of_preprocessing) return "preprocessing";
  return shown_name(run.names.name(name));
}

}  // namespace

std::string what_of(const wait_sample& sample) {
  if (sample.address == 0 || (sample.reason == wait_reason::condition && !sample.what.empty() &&
                              sample.what.find(' ') != std::string::npos)) {
    return sample.what;  // the thread waits for another thread's end, which `what` describes
  }
  if (sample.what.empty()) return address_text(sample.address);
  return sample.what + " (" + address_text(sample.address) + ')';
}

std::vector<blocked_on> blocked_list::of(std::optional<std::int64_t> blocked_ns) const {
  std::vector<blocked_on> scaled = by;
  if (!blocked_ns) return scaled;
  for (blocked_on& one : scaled) {
    one.ns = std::llround(one.share * static_cast<double>(*blocked_ns));
  }
  return scaled;
}

const blocked_list* run_blocked_on::of(std::string_view name) const {
  const auto found = ops.find(name);
  return found == ops.end() ? nullptr : &found->second;
}

run_blocked_on join_waits(const run_data& run, diagnostic_log& diagnostics) {
  run_blocked_on joined;
  std::vector<process_waits> processes = read_waits(*run.files, diagnostics);
  if (processes.empty()) return joined;
  const thread_logs threads(run);
  std::vector<const wait_sample*> samples;
  std::vector<std::size_t> process_of;  // by index of the sample
  // For each log, by its index: the times of samples at which the open operations of the log's
  // thread must be found.
  std::unordered_map<std::size_t, std::vector<moment>> moments;
  for (const process_waits& process : processes) {
    // Caches the logs of each thread.
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> logs;
    const auto ask = [&](std::uint64_t tid, const moment& when) {
      const auto [known, fresh] = logs.try_emplace(tid);
      if (fresh) known->second = threads.of(tid, process.ending);
      for (const std::size_t file : known->second) moments[file].push_back(when);
    };
    joined.processes.push_back(process.ending);
    for (const wait_sample& sample : process.samples) {
      const std::size_t number = samples.size();
      samples.push_back(&sample);
      process_of.push_back(joined.processes.size() - 1);
      ask(sample.tid, {sample.time_ns, number, false});
      if (sample.holder != 0) ask(sample.holder, {sample.time_ns, number, true});
    }
  }
  for (auto& [file, of] : moments) {
    std::stable_sort(of.begin(), of.end(),
                     [](const moment& a, const moment& b) { return a.time_ns < b.time_ns; });
  }
  std::vector<open_spans> open(samples.size());
  for (const batch_record& r : run.batches.records()) {
    const auto at = moments.find(r.file.value());
    if (at == moments.end() || r.is_marker()) continue;
    if (r.kind != record_kind::wait && r.kind != record_kind::preprocessed) continue;
    visit(at->second, r.start_ns, r.end_ns(),
          r.kind == record_kind::wait ? of_wait : of_preprocessing, open);
  }
  for (auto& [file, of] : moments) {
    run.for_each_operation(file, [&, &of = of](const operation& op) {
      visit(of, op.start_ns, op.end_ns(), op.name, open);
    });
  }
  std::map<std::uint32_t, collector> collectors;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::string what = what_of(*samples[i]);
    const std::string held_by = open[i].holder_known ? held_name(run, open[i].holder) : "";
    for (const std::uint32_t name : open[i].names) {
      collectors[name].add(*samples[i], process_of[i], what, held_by);
    }
  }
  for (auto& [name, of] : collectors) {
    (name == of_wait            ? joined.waits
     : name == of_preprocessing ? joined.preprocessing
                                : joined.ops[std::string(run.names.name(name))]) = of.finish();
  }
  return joined;
}

namespace {

void write_list(json_writer& json, const std::vector<blocked_on>& list) {
  constexpr std::size_t most = 20;
  json.begin_array();
  std::size_t written = 0;
  for (const blocked_on& one : list) {
    if (written++ == most) break;
    json.begin_object();
    json.member("reason", lotus::detail::wait_reason_words[static_cast<std::size_t>(one.reason)]);
    if (!one.what.empty()) json.member("what", one.what);
    if (!one.held_by.empty()) {
      json.member("held_by", one.held_by).member("held_share", one.held_share);
    }
    json.member("ns", one.ns).member("share", one.share).member("samples", one.samples);
    write_calls(json, one.calls);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_calls(json_writer& json, const std::vector<std::string>& calls) {
  if (calls.empty()) return;
  json.key("stack").begin_array();
  for (const std::string& call : calls) json.value(call);
  json.end_array();
}

void write_all_blocked_on(json_writer& json, const run_blocked_on& joined) {
  if (joined.empty()) return;
  json.key("blocked_on").begin_object().key("ops").begin_object();
  for (const auto& [name, list] : joined.ops) {
    json.newline().key(shown_name(name));
    write_list(json, list.by);
  }
  json.end_object();
  if (!joined.waits.empty()) {
    json.newline().key("wait");
    write_list(json, joined.waits.by);
  }
  if (!joined.preprocessing.empty()) {
    json.newline().key("preprocess");
    write_list(json, joined.preprocessing.by);
  }
  json.end_object();
}

void write_blocked_on(json_writer& json, const blocked_list* list,
                      std::optional<std::int64_t> blocked_ns) {
  if (list == nullptr || list->empty()) return;
  json.key("blocked_on");
  write_list(json, list->of(blocked_ns));
}

std::string wait_phrase(const blocked_on& of, const std::string& name) {
  const std::string what = printable_line(without_address(of.what));
  const std::string behind = what.empty() ? "" : ' ' + what;
  switch (of.reason) {
    case wait_reason::lock: {
      const bool named = !what.empty() && what.substr(0, 2) != "0x";
      std::string text = named ? "waits for the lock" + behind : "waits for a lock";
      if (of.held_by.empty()) return text;
      text += " held by " + printable_line(of.held_by);
      return text + (of.held_by == name ? " on other threads" : "");
    }
    case wait_reason::condition:
      if (what == "the end of a thread") return "waits for the end of a thread";
      return what.empty() || what.substr(0, 2) == "0x"
                 ? "waits for a condition variable or the like"
                 : "waits for the condition" + behind;
    case wait_reason::file:
      return "waits for the disk:" + (behind.empty() ? " a file" : behind);
    case wait_reason::pipe:
      return "waits for the pipe" + behind;
    case wait_reason::socket:
      return "waits for the network:" + (behind.empty() ? " a socket" : behind);
    case wait_reason::poll:
      return "waits in" + behind + " for descriptors to become ready";
    case wait_reason::sleep:
      return "sleeps";
    case wait_reason::process:
      return "waits for a child process";
    case wait_reason::page_fault:
      return "waits for pages of memory that are read from the disk";
    case wait_reason::other:
      break;
  }
  return behind.empty() ? "waits in the kernel" : "waits in the kernel:" + behind;
}

std::string wait_phrases(const blocked_list& list, const std::string& name, double blocked) {
  constexpr double worth_naming = 0.1;
  std::string text;
  for (const blocked_on& one : list.by) {
    const double share = std::min(1.0, one.share * blocked);
    if (!text.empty() && share < worth_naming) break;
    text += (text.empty() ? "" : " and ") + wait_phrase(one, name) + " during " +
            std::to_string(std::lround(100 * share)) + " % of its time";
  }
  return text;
}

std::string waiting_text(const run_blocked_on& joined, const std::string& name,
                         std::int64_t blocked_ns, std::int64_t wall_ns) {
  constexpr std::uint64_t min_samples = 10;
  const blocked_list* const list = joined.of('S' + name);
  if (list == nullptr || list->samples < min_samples || wall_ns <= 0) return {};
  const double blocked = static_cast<double>(blocked_ns) / static_cast<double>(wall_ns);
  if (blocked < 0.5) return {};
  return printable_line(name) + ' ' + wait_phrases(*list, name, blocked) + '.';
}

}  // namespace lotus::tool
