#include "sampling/read/symbols.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/guarded_reader.hpp"
#include "mapping/read/function_report.hpp"
#include "sampling/read/module_questions.hpp"

namespace lotus::tool {
namespace {

/// Returns when a file was last written or replaced, in ns since 1970; 0 if unknown. Files from a
/// package have the modification time of their build, so the time of birth counts too. If the file
/// system does not store it, the change time does, which also changes with permissions and links.
std::int64_t changed_ns(const std::string& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME | STATX_MTIME | STATX_CTIME, &status) != 0) {
    return 0;
  }
  const auto in_ns = [](const statx_timestamp& time) {
    constexpr std::int64_t second_ns = 1'000'000'000;
    return time.tv_sec * second_ns + time.tv_nsec;
  };
  const bool knows_birth = (status.stx_mask & STATX_BTIME) != 0;
  return std::max(in_ns(status.stx_mtime),
                  in_ns(knows_birth ? status.stx_btime : status.stx_ctime));
}

}  // namespace

void report_change(const std::string& module_path, std::int64_t seen_ns,
                   diagnostic_log& diagnostics) {
  if (changed_ns(module_path) <= seen_ns) return;
  diagnostics.warning(module_path +
                      ": has changed since it was sampled; if it was rebuilt, names of functions "
                      "are wrong: record again");
}

/// Looks up functions in one ELF file and its debug info, which a child process reads.
class symbol_source::module {
 public:
  module(const std::string& path, std::int64_t seen_ns, diagnostic_log& diagnostics) :path_(path),
      diagnostics_(diagnostics), reader_({bytes_of(path)}, module_reader(path)) {
    const std::string state = module_fields(ask(ask_state, 0)).next();
    if (gave_up_) return;
    if (state == unreadable) {
      diagnostics.note(path + ": cannot be read, so its functions have no names");
      return;
    }
    report_change(path, seen_ns, diagnostics);
    if (state == stripped) {
      diagnostics.note(
          path +
          ": it is stripped, so only its exported and virtual functions have names; install its "
          "debug symbols");
    }
  }

  const code_place& at(std::uint64_t file_offset) {
    const auto [entry, fresh] = known_.try_emplace(file_offset);
    if (!fresh) return entry->second;
    entry->second = {std::string(no_symbols), path_, {}};
    module_fields answer(ask(ask_place, file_offset));
    if (answer.at_end()) return entry->second;
    entry->second.function = answer.next();
    entry->second.inlined = answer.next();
    return entry->second;
  }

  std::vector<source_frame> frames(std::uint64_t file_offset) {
    std::vector<source_frame> all;
    for (module_fields answer(ask(ask_frames, file_offset)); !answer.at_end();) {
      source_frame& frame = all.emplace_back();
      frame.function = answer.next();
      frame.file = answer.next();
      frame.line = static_cast<int>(answer.next_number());
      frame.begin = answer.next_number();
      frame.defined_in = answer.next();
      frame.defined_at = static_cast<int>(answer.next_number());
      frame.has_object = answer.next_number() != 0;
    }
    if (all.empty()) all.emplace_back().function = no_symbols;
    return all;
  }

 private:
  static std::uint64_t bytes_of(const std::string& path) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    return error ? 0 : bytes;
  }

  std::string ask(std::string_view what, std::uint64_t offset) {
    if (gave_up_) return {};
    module_fields question;
    question.add(what);
    question.add(offset);
    std::optional<std::string> answer = reader_.ask(question.take());
    if (answer) return *std::move(answer);
    gave_up_ = true;
    diagnostics_.note(path_ +
                      ": it is damaged, or takes too much time or memory to read, so its functions "
                      "have no names");
    return {};
  }

  std::string path_;
  diagnostic_log& diagnostics_;
  guarded_reader reader_;
  bool gave_up_ = false;
  std::map<std::uint64_t, code_place> known_;
};

symbol_source::symbol_source(diagnostic_log& diagnostics) : diagnostics_(diagnostics) {}
symbol_source::~symbol_source() = default;

symbol_source::module& symbol_source::find(const std::string& module_path, std::int64_t seen_ns) {
  std::unique_ptr<module>& found = modules_[module_path];
  if (!found) found = std::make_unique<module>(module_path, seen_ns, diagnostics_);
  return *found;
}

const code_place& symbol_source::at(const std::string& module_path, std::uint64_t file_offset,
                                    std::int64_t seen_ns) {
  return find(module_path, seen_ns).at(file_offset);
}

std::vector<source_frame> symbol_source::frames_at(const std::string& module_path,
                                                   std::uint64_t file_offset,
                                                   std::int64_t seen_ns) {
  return find(module_path, seen_ns).frames(file_offset);
}

}  // namespace lotus::tool
