// Describes what threads waited for, and puts it into words.
#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "describe/description.hpp"
#include "log/shown_name.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/join/sampled_waits.hpp"

namespace lotus::tool {
namespace {

/// Returns an object without its address, which does not help the user.
std::string named(const wait_object& of) {
  return of.files == 0 ? of.name : of.name + " (" + std::to_string(of.files) + " files)";
}

/// Returns words for all waits of a list for files, for network connections or for pipes; "" if one
/// of these has most of them, so that it can be named.
std::string words_for_several(const blocked_list& list, wait_reason reason) {
  constexpr double most_of_it = 0.7;
  const bool is_many =
      reason == wait_reason::file || reason == wait_reason::socket || reason == wait_reason::pipe;
  if (!is_many) return {};
  std::size_t number = 0;
  double largest = 0;
  double all = 0;
  for (const blocked_on& one : list.by) {
    if (one.reason != reason) continue;
    number += std::max<std::size_t>(1, one.what.files);
    largest = std::max(largest, one.share);
    all += one.share;
  }
  if (largest >= most_of_it * all) return {};
  if (reason == wait_reason::pipe) return "waits for " + counted(number, "pipe", "pipes");
  return reason == wait_reason::file
             ? "waits for the disk (" + counted(number, "file", "files") + ')'
             : "waits for the network (" + counted(number, "connection", "connections") + ')';
}

/// Returns the functions of the program in which a thread waits, the innermost first.
std::vector<std::string> own_functions(const blocked_on& of) {
  std::vector<std::string> own;
  for (const std::string& call : of.calls) {
    const auto begins = [&call](std::string_view with) {
      return std::string_view(call).substr(0, with.size()) == with;
    };
    const bool is_library = begins("__") || begins("std::") || begins("...") || begins("lotus::");
    const bool says_nothing = call == "main" || call.find("lambda") != std::string::npos;
    if (!is_library && !says_nothing) own.push_back(call);
  }
  return own;
}

}  // namespace

std::string object_text(const wait_object& of) {
  if (of.address == 0) return named(of);
  std::ostringstream text;
  text << (of.name.empty() ? "0x" : of.name + " (0x") << std::hex << of.address
       << (of.name.empty() ? "" : ")");
  return text.str();
}

const description<blocked_on>& description_of(const blocked_on*) {
  using b = const blocked_on&;
  static const description<blocked_on> all(
      "blocked_on", "one thing that was waited for; times of an operation include those inside it",
      {
          {"reason", [](b of) { return reason_word(of.reason); }, "why a thread was blocked",
           words_of(lotus::detail::wait_reason_words)},
          {"what", [](b of) { return object_text(of.what); },
           "name or path of what was waited for; absent if unknown", if_any},
          {"held_by", &blocked_on::held_by,
           "the operation that mostly held the lock, or \"code outside of all operations\"",
           if_any},
          {"held_share", &blocked_on::held_share,
           "share of the looks with a known holder in which it held the lock",
           [](b of) { return !of.held_by.empty(); }},
          {"held_in", &blocked_on::held_in,
           "the function in which the holder itself mostly waited; absent if it mostly ran",
           if_any},
          {"taken_in", &blocked_on::taken_in,
           "the function that takes the lock, if its variable has no symbol", if_any},
          {"ns", &blocked_on::ns, "part of blocked_ns, in ns; estimated if that is unknown"},
          {"share", &blocked_on::share, "share of the looks at waiting threads"},
          {"samples", &blocked_on::samples, "number of these looks"},
          {"stack", &blocked_on::calls,
           "the calls in which a thread waited most often, the innermost first: from the function "
           "of the C or C++ library that the program called, to the thread's first function; "
           "absent if no stack was recorded, or if its file belongs to another user",
           if_any},
      });
  return all;
}

const description<run_blocked_on>& description_of(const run_blocked_on*) {
  using lists = named_values<std::vector<blocked_on>>;
  using r = const run_blocked_on&;
  static const description<run_blocked_on> all(
      "run_blocked_on", "what operations and batches waited for, with estimated times",
      {
          {"ops",
           [](r of) {
             return lists{[&of](const auto& visit) {
               for (const auto& [name, list] : of.ops) {
                 visit(shown_name(name), listed(&list, std::nullopt));
               }
             }};
           },
           "by operation: what it waited for, most frequent first"},
          {"wait", [](r of) { return listed(&of.waits, std::nullopt); },
           "what the consumer waited for while it waited for batches", if_any},
          {"preprocess", [](r of) { return listed(&of.preprocessing, std::nullopt); },
           "what threads waited for while they built batches", if_any},
      });
  return all;
}

std::string lock_name(const blocked_on& of) {
  const std::string& name = of.what.name;
  if (has_name(of)) return (name[0] == '/' ? "the file lock " : "the lock ") + printable_line(name);
  return of.taken_in.empty() ? "a lock" : "the lock taken in " + printable_line(of.taken_in);
}

std::string lock_holders(const blocked_on& of) {
  const std::string also = of.also_held_by.empty() ? "" : " and " + printable_line(of.also_held_by);
  return printable_line(of.held_by) + also;
}

std::string what_holder_does(const blocked_on& of) {
  if (!of.held_in.empty()) return " (its holder waits in " + printable_line(of.held_in) + ')';
  return of.runs_in.empty() ? "" : " (its holder runs in " + of.runs_in + ')';
}

std::string wait_phrase(const blocked_on& of, const std::string& name) {
  const std::string what = printable_line(named(of.what));
  const std::string behind = what.empty() ? "" : ' ' + what;
  switch (of.reason) {
    case wait_reason::lock: {
      std::string text = "waits for " + lock_name(of);
      if (!of.held_by.empty()) {
        text += " held by " + lock_holders(of);
        if (of.held_by == name && of.also_held_by.empty()) text += " on other threads";
      }
      return text + what_holder_does(of);
    }
    case wait_reason::condition:
      if (of.what.name == thread_end_word) return "waits for the end of a thread";
      return what.empty() ? "waits for a condition variable or similar (futex)"
                          : "waits for the condition" + behind;
    case wait_reason::file:
      return "waits for the disk:" + (behind.empty() ? " a file" : behind);
    case wait_reason::pipe:
      // The kernel's number of a pipe without a path tells nobody anything.
      return of.what.name.rfind("pipe:[", 0) == 0 ? "waits for a pipe"
                                                  : "waits for the pipe" + behind;
    case wait_reason::socket:
      // A socket without an address may be one of two processes of one machine.
      return what.empty() || of.what.name.rfind("socket:[", 0) == 0
                 ? "waits for a socket"
                 : "waits for the network:" + behind;
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

std::string own_calls(const blocked_on& of) {
  // Few samples do not tell which of two places is the one with more time.
  constexpr double clearly_most = 0.6;
  if (of.calls_share < clearly_most) return {};
  // A condition variable is the loader's own, so one function says enough. What else waits is often
  // a helper or a function of a library.
  const std::size_t most = of.reason == wait_reason::condition ? 1 : 2;
  std::vector<std::string> own = own_functions(of);
  own.resize(std::min(most, own.size()));
  return joined(own, ", called by ", printable_line);
}

std::string wait_phrases(const blocked_list& list, const std::string& name, double blocked) {
  constexpr double worth_naming = 0.1;
  // Waits for different objects may have the same words.
  std::vector<std::pair<std::string, double>> parts;
  for (const blocked_on& one : list.by) {
    std::string words = words_for_several(list, one.reason);
    if (words.empty()) words = wait_phrase(one, name);
    const auto same = std::find_if(parts.begin(), parts.end(),
                                   [&words](const auto& part) { return part.first == words; });
    if (same == parts.end()) {
      parts.emplace_back(std::move(words), one.share);
    } else {
      same->second += one.share;
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [words, of_blocked] : parts) {
    const double share = std::min(1.0, of_blocked * blocked);
    if (!text.empty() && share < worth_naming) break;
    text +=
        (text.empty() ? "" : " and ") + words + " during " + whole_percent(share) + " of its time";
  }
  return text;
}

std::string waiting_text(const run_blocked_on& joined, const std::string& name,
                         std::optional<std::int64_t> blocked_ns, std::int64_t total_ns,
                         double min_blocked) {
  constexpr std::uint64_t min_samples = 10;
  const blocked_list* const list = joined.of('S' + name);
  if (list == nullptr || list->samples < min_samples || total_ns <= 0) return {};
  const double blocked =
      static_cast<double>(blocked_ns.value_or(list->ns)) / static_cast<double>(total_ns);
  if (blocked < min_blocked) return {};
  const std::string text = printable_line(name) + ' ' + wait_phrases(*list, name, blocked);
  // Other reasons say what is waited for. The outermost functions only contain the operation.
  constexpr double nearly_only = 0.8;
  constexpr std::size_t deep = 3;
  const blocked_on& most = list->by.front();
  const bool lacks_object = most.reason == wait_reason::sleep ||
                            (most.reason == wait_reason::condition && named(most.what).empty());
  const bool has_place =
      lacks_object && most.share >= nearly_only && own_functions(most).size() >= deep;
  const std::string calls = has_place ? own_calls(most) : std::string();
  return calls.empty() ? text : text + ", mostly in " + calls;
}

std::string log_waits::text(std::size_t file, std::int64_t start_ns, std::int64_t end_ns,
                            const std::string& name) const {
  constexpr std::size_t max_named = 3;
  if (file >= of_log_.size()) return {};
  std::map<std::string, std::uint64_t> samples;
  for (auto at = first(file, start_ns); at != of_log_[file].end() && at->time_ns < end_ns; ++at) {
    ++samples[wait_phrase(entries_[at->entry], name)];
  }
  std::vector<std::pair<std::string, std::uint64_t>> all(samples.begin(), samples.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), max_named); ++i) {
    text.append(i == 0 ? "" : ", ").append(all[i].first);
    text += " (" + std::to_string(all[i].second) + (all[i].second == 1 ? " sample)" : " samples)");
  }
  if (all.size() > max_named) text += " and " + std::to_string(all.size() - max_named) + " more";
  return text;
}

const char* part_name(waiting_part part) noexcept {
  static constexpr const char* names[] = {"operation", "wait", "preprocess"};
  return names[static_cast<std::size_t>(part)];
}

}  // namespace lotus::tool
