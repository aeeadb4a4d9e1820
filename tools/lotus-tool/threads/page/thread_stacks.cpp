#include "threads/page/thread_stacks.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/sample_times.hpp"
#include "threads/analysis/suggested_markers.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/view/headline.hpp"
#include "threads/view/threads_view.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// A name, such as that of a function, the file or library that the report shows with it, and
/// whether it is a function of the C or C++ library.
using stack_name = std::tuple<std::string, std::string, bool>;

/// Assigns numbers to names.
class stack_names {
 public:
  std::size_t number(const std::string& name, const std::string& place = "",
                     bool of_runtime = false) {
    const stack_name one{name, place, of_runtime};
    const auto [at, is_new] = known_.try_emplace(one, all_.size());
    if (is_new) all_.push_back(one);
    return at->second;
  }
  void write(json_writer& json) const {
    json.list(all_, [&](const stack_name& one) {
      const auto& [name, place, of_runtime] = one;
      json.row(name, place, of_runtime ? 1 : 0);
    });
  }

 private:
  std::map<stack_name, std::size_t> known_;
  std::vector<stack_name> all_;
};

/// A tree of calls, in which each call is a child of its caller. Each call has the time and the
/// number of the samples that contain it.
class stack_tree {
 public:
  /// Adds the time of the sample `of` to the call of the function `name` by `caller`. Returns the
  /// call's number.
  std::int64_t add(std::int64_t caller, std::size_t name, const timed_sample& of) {
    const auto [at, is_new] = places_.try_emplace({caller, name}, nodes_.size());
    if (is_new) nodes_.push_back({caller, name});
    node& found = nodes_[at->second];
    found.time_s += of.time_s;
    found.count += of.of->count;
    return static_cast<std::int64_t>(at->second);
  }
  void write(json_writer& json) const {
    json.list(nodes_, [&](const node& of) {
      json.row(of.caller, of.name, std::llround(1e9 * of.time_s), of.count);
    });
  }

 private:
  struct node {
    std::int64_t caller = -1;
    std::size_t name = 0;
    double time_s = 0;
    std::uint64_t count = 0;
  };
  std::vector<node> nodes_;
  std::map<std::pair<std::int64_t, std::size_t>, std::size_t> places_;
};

void write_groups(const threads_view& view, json_writer& json) {
  json.key("groups").begin_array();
  for (std::size_t i = 0; i < view.groups.size(); ++i) {
    const thread_activity& group = view.groups[i];
    json.begin_object().member("name", shown_group(group)).member("ns", 1e9 * group.time_s);
    json.member("running", group.running).member("run_queue", group.run_queue);
    json.member("blocked", group.blocked_share());
    if (!group.blocked.empty()) {
      json.member("wait", shown_place(group.blocked.front().function));
    }
    if (!group.functions.empty()) {
      json.member("function", shown_work(group.functions.front().function));
    }
    json.key("chain").list(chain_sentences(view.groups, wait_chain(view.samples, view.groups, i)));
    json.end_object();
  }
  json.end_array();
}

void write_markers(const std::vector<suggested_marker>& markers, json_writer& json) {
  json.key("markers").list(markers, [&](const suggested_marker& marker) {
    json.begin_object().member("file", marker.at.file).member("line", marker.at.line);
    json.member("place", std::string(marker.is_after() ? "after" : "before") + " this line" +
                             (is_lambda(marker.at) ? ", inside the lambda" : ""));
    json.member("text", marker.text()).member("header", marker.header());
    json.member("sure", marker.sure).end_object();
  });
}

std::string first_of(const std::string& dir, const threads_view& view) {
  const fs::path path = fs::path(dir).lexically_normal();
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  std::string text;
  json_writer json(text);
  json.begin_object().member("name", name).member("dir", dir);
  json.member("headline", headline_of(view.groups, view.chain))
      .member("cpu_sampled", view.samples.interval_ns != 0);
  write_groups(view, json);
  write_markers(view.markers, json);
  json.end_object();
  return text;
}

std::string stacks_of(const threads_view& view) {
  stack_names names;
  stack_tree running;
  stack_tree waiting;
  for (const timed_sample& one : sample_times(view.samples, view.groups)) {
    const thread_sample& s = *one.of;
    stack_tree& tree = s.waits ? waiting : running;
    std::int64_t at = tree.add(-1, names.number(shown_group(view.groups[one.group])), one);
    if (s.waits) {
      blocked_part wait;
      wait.reason = s.reason;
      wait.what = s.what;
      at = tree.add(at, names.number(shown_wait(wait)), one);
    }
    const named_stack& calls = view.stacks.of(s.stack);
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      const std::string& place = call->file.empty() ? call->module : call->file;
      at = tree.add(
          at, names.number(call->function, std::string(file_name(place)), is_of_runtime(*call)),
          one);
    }
  }
  std::string text;
  json_writer json(text);
  json.begin_object().key("names");
  names.write(json);
  json.newline().key("running");
  running.write(json);
  json.newline().key("waiting");
  waiting.write(json);
  json.end_object();
  return text;
}

void write_all(const std::vector<std::string>& parts, json_writer& json) {
  json.list(parts, [&](const std::string& part) { json.newline().raw(part); });
}

}  // namespace

void sampled_threads::add(const std::string& dir, diagnostic_log& diagnostics) {
  if (has(dir) || !has_thread_samples(dir)) return;
  const threads_view view = read_threads(dir, diagnostics);
  dirs_.insert(dir);
  first_.push_back(first_of(dir, view));
  stacks_.push_back(stacks_of(view));
}

void sampled_threads::write_first(json_writer& json) const {
  write_all(first_, json);
}

void sampled_threads::write_stacks(json_writer& json) const {
  write_all(stacks_, json);
}

}  // namespace lotus::tool
