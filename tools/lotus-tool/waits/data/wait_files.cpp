#include "waits/data/wait_files.hpp"

#include <algorithm>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/files/build_ids.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "sampling/read/variable_names.hpp"
#include "threads/data/thread_samples.hpp"
#include "waits/data/process_files.hpp"
#include "waits/data/stack_files.hpp"

namespace lotus::tool {
namespace {

/// Maximum number of samples of a run that are kept: each takes up to 310 bytes with what is
/// derived from it.
constexpr std::size_t max_wait_samples = std::size_t{1} << 18U;

/// The samples of all processes of a run. If there are many, keeps only each second one of them,
/// each fourth and so on, and lets it stand for the time of those that are left out. Shares stay
/// exact within 0.2 percentage points, and memory stays bounded.
class limited_samples {
 public:
  process_waits& of(const std::string& ending) {
    process_waits& process = by_ending_[ending];
    process.ending = ending;
    return process;
  }

  void add(process_waits& to, wait_sample sample) {
    if (seen_++ % every_ != 0) return;
    sample.ns = times(sample.ns, every_);
    to.samples.push_back(std::move(sample));
    if (++kept_ > max_wait_samples) halve();
  }

  /// Returns the processes that have samples, with the samples sorted by time and thread.
  std::vector<process_waits> take() {
    std::vector<process_waits> all;
    for (auto& [ending, process] : by_ending_) {
      std::stable_sort(process.samples.begin(), process.samples.end(),
                       [](const wait_sample& a, const wait_sample& b) {
                         return std::tie(a.time_ns, a.tid) < std::tie(b.time_ns, b.tid);
                       });
      if (!process.samples.empty()) all.push_back(std::move(process));
    }
    return all;
  }

 private:
  static std::int64_t times(std::int64_t ns, std::int64_t factor) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(ns, factor, &product) ? ns : product;
  }

  void halve() {
    every_ *= 2;
    kept_ = 0;
    for (auto& [ending, process] : by_ending_) {
      std::vector<wait_sample>& samples = process.samples;
      for (std::size_t i = 0; i < samples.size(); i += 2) {
        samples[i].ns = times(samples[i].ns, 2);
        if (i > 0) samples[i / 2] = std::move(samples[i]);
      }
      samples.resize((samples.size() + 1) / 2);
      kept_ += samples.size();
    }
  }

  std::map<std::string, process_waits> by_ending_;
  std::int64_t every_ = 1;
  std::int64_t seen_ = 0;
  std::size_t kept_ = 0;
};

/// Parses the lines of a file with wait samples and stores the samples in `to`.
class line_reader {
 public:
  line_reader(process_waits& to, limited_samples& samples, variable_names& variables)
      : to_(to), samples_(samples), variables_(variables) {}

  /// Parses one line. Returns false if the line is damaged.
  bool take_line(std::string_view line) {
    const std::string_view kind = take(line, ',');
    if (kind == "look") return parse_sample(line);
    std::uint64_t address = 0;
    if (kind == "named") {
      if (!read_number(take(line, ','), address, 16) || line.empty()) return false;
      stored_[address] = line;
      return true;
    }
    std::uint64_t id = 0;
    if (!read_number(take(line, ','), id) || id == 0) return false;
    // The lines that follow refer to the newest 512 objects, which have the largest numbers.
    if (objects_.size() > UINT16_MAX) objects_.erase(objects_.begin());
    if (named_.size() > UINT16_MAX) named_.erase(named_.begin());
    if (kind == "object") {
      objects_[id] = line;
      return !line.empty();
    }
    if (kind == "build") {
      if (id != variable_.id) return false;
      // In another build of the module, another variable may have this address.
      if (!is_same_build(variable_.path, std::string(line))) {
        objects_[id] = variable_names::unknown(variable_.path, variable_.distance);
        named_[variable_.address] = objects_[id];
      }
      return true;
    }
    std::uint64_t base = 0;
    if (kind != "variable" || !read_number(take(line, ','), address, 16) ||
        !read_number(take(line, ','), base, 16) || base > address || line.empty()) {
      return false;
    }
    variable_ = {id, address, address - base, std::string(line)};
    objects_[id] = variables_.at(variable_.path, variable_.distance);
    named_[address] = objects_[id];
    return true;
  }

  /// Sets the missing names of variables in samples. A name may be missing because the line with
  /// the name came after the sample.
  void name_all() {
    std::map<wait_reason, std::vector<std::string*>> variables;
    for (wait_sample& sample : to_.samples) {
      const auto stored = stored_.find(sample.address);
      if (stored != stored_.end()) sample.what = stored->second;
      const auto known = named_.find(sample.address);
      if (sample.what.empty() && known != named_.end()) sample.what = known->second;
      if (sample.address != 0) variables[sample.reason].push_back(&sample.what);
    }
    for (const auto& [reason, names] : variables) variable_names::drop_distances(names);
  }

  /// Returns lines for the file, which contain the names of variables that were not stored before.
  std::string names_text() const {
    std::ostringstream text;
    for (const auto& [address, name] : named_) {
      if (stored_.count(address) != 0) continue;
      text << "named," << std::hex << address << ',' << printable_line(name) << '\n';
    }
    return text.str();
  }

 private:
  bool parse_sample(std::string_view line) {
    wait_sample sample;
    std::uint64_t object = 0;
    if (!read_number(take(line, ','), sample.time_ns) ||
        !read_number(take(line, ','), sample.tid) || !read_reason(take(line, ','), sample.reason) ||
        !read_number(take(line, ','), object) ||
        !read_number(take(line, ','), sample.address, 16) ||
        !read_number(take(line, ','), sample.holder) || !read_number(line, sample.ns)) {
      return false;
    }
    const auto known = objects_.find(object);
    if (known != objects_.end()) sample.what = known->second;
    samples_.add(to_, std::move(sample));
    return true;
  }

  process_waits& to_;
  limited_samples& samples_;
  variable_names& variables_;
  std::map<std::uint64_t, std::string> objects_;
  std::map<std::uint64_t, std::string> named_;   // names of variables by address
  std::map<std::uint64_t, std::string> stored_;  // the same, as stored when the run ended
  /// The variable in the last line "variable".
  struct {
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    std::uint64_t distance = 0;
    std::string path;
  } variable_;
};

}  // namespace

std::map<std::string, std::string> variable_names_text(const run_files& run) {
  limited_samples samples;
  variable_names variables;
  diagnostic_log silent = diagnostic_log::silenced();
  std::map<std::string, std::string> texts;
  for (const process_file& file :
       files_of_processes(run, lotus::detail::waits_file_start, silent)) {
    line_reader lines(samples.of(file.ending), samples, variables);
    read_whole_lines(file.path, "", silent,
                     [&lines](std::string_view line) { return lines.take_line(line); });
    texts[file.path] = lines.names_text();
  }
  return texts;
}

std::vector<process_waits> read_waits(const run_files& run, diagnostic_log& diagnostics) {
  limited_samples samples;
  variable_names variables;
  for (const process_file& file :
       files_of_processes(run, lotus::detail::waits_file_start, diagnostics)) {
    line_reader lines(samples.of(file.ending), samples, variables);
    read_whole_lines(file.path, "not a wait sample; ", diagnostics,
                     [&lines](std::string_view line) { return lines.take_line(line); });
    lines.name_all();
  }
  std::vector<process_waits> all = samples.take();
  for (process_waits& process : all) {
    const auto is_outside = [&run](const wait_sample& sample) {
      return run.part && !run.part->has(sample.time_ns, sample.time_ns);
    };
    std::vector<wait_sample>& of = process.samples;
    of.erase(std::remove_if(of.begin(), of.end(), is_outside), of.end());
  }
  find_stacks(run, all, diagnostics);
  return all;
}

}  // namespace lotus::tool
