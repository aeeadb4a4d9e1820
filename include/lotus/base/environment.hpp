// Lists all environment variables of lotus in one table, and provides the functions that read them.
#ifndef LOTUS_BASE_ENVIRONMENT_HPP
#define LOTUS_BASE_ENVIRONMENT_HPP

#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The environment variables of lotus, in the same order as in environment_table.
enum class variable : std::uint8_t {
  log_file,
  format,
  keep_bytes,
  wait_samples_per_s,
  rank,
  annotate,
  collector,
  collector_timeout_ms,
  perf_control,
  map_op,
  map_warmup,
  map_passes,
  map_sleep_ms,
  map_rate,
  map_folder,
  map_list,
  run_list,
};

enum class variable_type : std::uint8_t {
  text,    ///< any text; the code that uses the variable checks it
  number,  ///< a whole decimal number
  word,    ///< one of the words in `values`; the first of them is the default
  words,   ///< any number of the words in `values`, separated by commas
};

struct variable_row {
  const char* name;
  variable_type type;
  /// Possible values, as shown to users. If the values are words: all words, separated by '|'.
  const char* values;
  /// The value that applies if the variable is unset, empty or invalid, as shown to users.
  const char* otherwise;
  const char* meaning;           ///< meaning of the variable, as shown to users
  std::uint64_t least = 0;       ///< minimum of a number
  std::uint64_t most = 0;        ///< maximum of a number
  std::uint64_t by_default = 0;  ///< default of a number
};

/// The list of all collectors, in the order in which LOTUS_COLLECTOR=auto looks for them. Expands
/// to WITH(NAME) for each collector. The library calls the functions NAME_is_here() and
/// NAME_backend(); lotus-tool can start a program under each collector.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the names are also joined to one string literal
#define LOTUS_DETAIL_COLLECTORS(WITH) WITH(callgrind) WITH(perf) WITH(itt) WITH(uprof) WITH(builtin)

enum class collector_id : std::uint8_t {
#define LOTUS_DETAIL_ID(name) name,
  LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_ID)
#undef LOTUS_DETAIL_ID
};

inline constexpr const char* collector_names[] = {
#define LOTUS_DETAIL_NAME(name) #name,
    LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_NAME)
#undef LOTUS_DETAIL_NAME
};

#define LOTUS_DETAIL_WORD(name) #name "|"
/// The table of all variables, which `lotus-tool help environment` prints. An empty variable counts
/// as unset, so that VARIABLE= in front of a command cancels an exported variable.
inline constexpr variable_row environment_table[] = {
    {"LOTUS_LOG_FILE", variable_type::text, "DIRECTORY/PREFIX", "none",
     "folder of the logs and beginning of their names; starts the recording; not used if the "
     "program calls lotus::start()"},
    {"LOTUS_FORMAT", variable_type::word, "text|compact", "text; with a limit: compact",
     "format of the logs; overrides options::format, unless the program chose compact (binary) and "
     "this is text"},
    {"LOTUS_KEEP_BYTES", variable_type::number, "bytes", "0",
     "keep only the newest records, so that all logs in the folder have about this size; 0: keep "
     "all",
     0, UINT64_MAX, 0},
    {"LOTUS_WAIT_SAMPLES_PER_S", variable_type::number, "samples a second", "100",
     "how often to check what a thread waits for; 0: never", 0, 10'000, 100},
    {"LOTUS_RANK", variable_type::number, "number",
     "the first that is set of RANK, OMPI_COMM_WORLD_RANK and SLURM_PROCID",
     "the rank of this process in a distributed job", 0, UINT32_MAX, 0},
    {"LOTUS_ANNOTATE", variable_type::words, "itt|nvtx|torch", "none",
     "profilers that also get the recorded operations: VTune (itt), Nsight (nvtx), PyTorch's "
     "profiler (torch); several are separated by commas"},
    {"LOTUS_COLLECTOR", variable_type::word,
     "auto|" LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_WORD) "none", "auto; if invalid: none",
     "profiler that samples LOTUS_MAP_REGION blocks; auto: the one under which the program runs; "
     "builtin: that of Lotus itself"},
    {"LOTUS_COLLECTOR_TIMEOUT_MS", variable_type::number, "milliseconds", "2000",
     "maximum time to wait for an answer of the profiler", 1, 3'599'999, 2000},
    {"LOTUS_PERF_CONTROL", variable_type::text, "fifo:CTL,ACK or fd:CTL,ACK", "not used",
     "if the program was started by 'perf record': the value of its option --control"},
    {"LOTUS_MAP_OP", variable_type::text, "name", "all regions",
     "name of the only LOTUS_MAP_REGION to sample"},
    {"LOTUS_MAP_WARMUP", variable_type::number, "number", "4",
     "number of executions of a LOTUS_MAP_REGION block before sampling", 0, 1'000'000'000, 4},
    {"LOTUS_MAP_PASSES", variable_type::number, "number", "1",
     "number of executions of a LOTUS_MAP_REGION block that are sampled", 1, 1'000'000'000, 1},
    {"LOTUS_MAP_SLEEP_MS", variable_type::number, "milliseconds", "1000",
     "how long the program sleeps so that VTune or uProf can begin to sample", 0, 1'000'000'000,
     1000},
    {"LOTUS_MAP_RATE", variable_type::number, "samples a second", "1000",
     "sampling rate of the profilers builtin and perf", 1, 1'000'000, 1000},
    {"LOTUS_MAP_FOLDER", variable_type::text, "folder", "next to the logs",
     "folder for the samples of the profiler builtin"},
    {"LOTUS_MAP_LIST", variable_type::text, "file", "not written",
     "file to which the program adds the names of its LOTUS_MAP_REGION blocks; set by "
     "'lotus-tool map run'"},
    {"LOTUS_RUN_LIST", variable_type::text, "file", "not written",
     "file to which the program adds the paths of its logs; set by 'lotus-tool run'"},
};
#undef LOTUS_DETAIL_WORD
inline constexpr std::size_t environment_variables =
    sizeof(environment_table) / sizeof(environment_table[0]);
static_assert(static_cast<std::size_t>(variable::run_list) + 1 == environment_variables,
              "a row for each variable, in the same order");

constexpr const variable_row& row_of(variable which) noexcept {
  return environment_table[static_cast<std::size_t>(which)];
}

/// Returns the variable's value, or null if it is unset or empty.
inline const char* environment_text(variable which) noexcept {
  const char* text = secure_getenv(row_of(which).name);
  // The name of version 0.2, for one release.
  if (text == nullptr && which == variable::wait_samples_per_s) {
    text = secure_getenv("LOTUS_WAIT_SAMPLES");
  }
  return text == nullptr || *text == '\0' ? nullptr : text;
}

/// Function that reports the invalid value of a variable.
/// @param bad  the whole value, or the word of the value that is invalid.
using report_variable = void (*)(const variable_row& row, std::string_view bad) noexcept;

/// Variables whose invalid value this shared object has already reported, one bit for each.
LOTUS_DETAIL_PER_MODULE inline std::atomic<std::uint32_t> reported_variables{0};
static_assert(environment_variables <= 32);

/// Reports an invalid value, at most once for each variable and shared object.
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void report_once(variable which,
                                                                  std::string_view bad,
                                                                  report_variable report) noexcept {
  const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(which);
  if ((reported_variables.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  report(row_of(which), bad);
}

/// Parses a decimal number that makes up the whole text. Returns false if the text is not such a
/// number, or if the number is too large.
inline bool parse_number(const char* text, std::uint64_t& number) noexcept {
  std::uint64_t sum = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; ++text) {
    const auto digit = static_cast<unsigned>(static_cast<unsigned char>(*text)) - '0';
    if (digit > 9 || sum > (UINT64_MAX - digit) / 10) return false;
    sum = sum * 10 + digit;
  }
  number = sum;
  return true;
}

/// Returns whether the variable holds a number between its minimum and its maximum.
/// @param value  set to that number, otherwise to the default.
inline bool environment_number(variable which, std::uint64_t& value,
                               report_variable report) noexcept {
  const variable_row& row = row_of(which);
  value = row.by_default;
  const char* const text = environment_text(which);
  if (text == nullptr) return false;
  std::uint64_t number = 0;
  if (!parse_number(text, number) || number < row.least || number > row.most) {
    report_once(which, text, report);
    return false;
  }
  value = number;
  return true;
}

/// Returns the index of a word among the possible values of a variable, or -1 if the word is not
/// one of them.
inline int place_of_word(const variable_row& row, std::string_view word) noexcept {
  std::string_view left = row.values;
  for (int place = 0;; ++place) {
    const std::size_t end = left.find('|');
    if (left.substr(0, end) == word) return place;
    if (end == std::string_view::npos) return -1;
    left.remove_prefix(end + 1);
  }
}

/// Returns the index of the variable's value among its possible values: 0 if the variable is unset,
/// `unknown` if the value is not one of them.
inline std::size_t environment_word(variable which, std::size_t unknown,
                                    report_variable report) noexcept {
  const char* const text = environment_text(which);
  if (text == nullptr) return 0;
  const int place = place_of_word(row_of(which), text);
  if (place >= 0) return static_cast<std::size_t>(place);
  report_once(which, text, report);
  return unknown;
}

/// Returns the words in the variable's value as a bit set: bit i stands for word i in the `values`
/// of the variable's row. Reports unknown words.
inline std::uint32_t environment_words(variable which, report_variable report) noexcept {
  const char* const text = environment_text(which);
  std::string_view left = text == nullptr ? "" : text;
  std::uint32_t given = 0;
  while (!left.empty()) {
    const std::size_t comma = left.find(',');
    const std::string_view word = left.substr(0, comma);
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    const int place = place_of_word(row_of(which), word);
    if (place >= 0) {
      given |= std::uint32_t{1} << static_cast<unsigned>(place);
    } else {
      report_once(which, word, report);
    }
  }
  return given;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_ENVIRONMENT_HPP
