#include "sampling/read/symbols.hpp"

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/build_ids.hpp"
#include "base/guarded_reader.hpp"
#include "mapping/read/function_report.hpp"
#include "sampling/read/module_questions.hpp"

namespace lotus::tool {
/// Looks up functions in one ELF file and its debug info, which a child process reads.
class symbol_source::module {
 public:
  module(const std::string& path, diagnostic_log& diagnostics, bool missing) :path_(path),
      diagnostics_(diagnostics), missing_(missing), reader_({bytes_of(path)}, module_reader(path)) {
    if (!missing) return;
    const std::string state = module_fields(ask(ask_state, 0)).next();
    if (gave_up_) return;
    if (state == unreadable) {
      diagnostics.note(path + ": cannot be read, so its functions have no names");
      return;
    }
    if (state == stripped) {
      diagnostics.note(
          path +
          ": it is stripped, so only its exported and virtual functions have names; install its "
          "debug symbols");
    }
  }

  /// Returns whether the file is the build that the program used. If not, reports it once.
  bool is_build(const std::string& build) {
    const auto [known, fresh] = builds_.try_emplace(build, true);
    if (!fresh) return known->second;
    known->second = is_same_build(path_, build);
    if (!known->second) {
      diagnostics_.warning(path_ +
                           ": was built again since the recording, so its functions have no names");
    }
    return known->second;
  }

  /// Returns the place of a function whose name is unknown.
  const code_place& unknown() const noexcept { return unknown_; }

  const code_place& at(std::uint64_t file_offset) {
    const auto [entry, fresh] = known_.try_emplace(file_offset);
    if (!fresh) return entry->second;
    entry->second = unknown_;
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
    if (!missing_) return {};
    diagnostics_.note(path_ +
                      ": it is damaged, or takes too much time or memory to read, so its functions "
                      "have no names");
    return {};
  }

  std::string path_;
  code_place unknown_{std::string(no_symbols), path_, {}};
  diagnostic_log& diagnostics_;
  bool missing_;
  guarded_reader reader_;
  std::map<std::string, bool> builds_;  // whether the file is the one with this build id
  bool gave_up_ = false;
  std::map<std::uint64_t, code_place> known_;
};

symbol_source::symbol_source(diagnostic_log& diagnostics, bool missing)
    : diagnostics_(diagnostics), missing_(missing) {}
symbol_source::~symbol_source() = default;

symbol_source::module& symbol_source::find(const std::string& module_path) {
  std::unique_ptr<module>& found = modules_[module_path];
  if (!found) found = std::make_unique<module>(module_path, diagnostics_, missing_);
  return *found;
}

const code_place& symbol_source::at(const std::string& module_path, std::uint64_t file_offset,
                                    const std::string& build) {
  module& of = find(module_path);
  return of.is_build(build) ? of.at(file_offset) : of.unknown();
}

std::vector<source_frame> symbol_source::frames_at(const std::string& module_path,
                                                   std::uint64_t file_offset,
                                                   const std::string& build) {
  module& of = find(module_path);
  if (of.is_build(build)) return of.frames(file_offset);
  source_frame unknown;
  unknown.function = no_symbols;
  return {unknown};
}

}  // namespace lotus::tool
