#include "accelerator/trace/nsys_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#ifdef LOTUS_TOOL_SQLITE
  #include <sqlite3.h>

  #include "base/formats/bounded_database.hpp"
#endif

#include "base/errors.hpp"
#include "base/guarded_reader.hpp"

namespace lotus::tool {

bool is_sqlite(const std::string& path) {
  constexpr std::string_view magic{"SQLite format 3\0", 16};
  std::string begin(magic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == magic;
}

#ifdef LOTUS_TOOL_SQLITE

namespace {

/// Converts CUPTI's number of a kind of copy. A database lists these numbers in the table
/// ENUM_CUDA_MEMCPY_OPER, and the numbers of kinds of memory in ENUM_CUDA_MEM_KIND.
copy_kind copy_kind_of_number(std::int64_t number) noexcept {
  if (number == 1 || number == 3) return copy_kind::to_device;
  if (number == 2 || number == 4) return copy_kind::to_host;
  if (number >= 5 && number <= 8) return copy_kind::on_device;
  return number == 10 ? copy_kind::between_devices : copy_kind::other;
}
host_memory host_memory_of_number(std::int64_t number) noexcept {
  if (number == 0) return host_memory::pageable;
  return number == 1 ? host_memory::pinned : host_memory::unknown;
}

class nsys_database {
 public:
  explicit nsys_database(const std::string& path)
      : path_(path), database_(path, std::chrono::seconds(budget_of(path).seconds())) {
    if (database_.status() != SQLITE_OK) fail();
  }

  bool has(const std::string& table) {
    bool found = false;
    for_each(
        "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = '" + table + "'",
        [&](sqlite3_stmt* /*row*/) { found = true; });
    return found;
  }

  bool has_column(const std::string& table, const std::string& column) {
    bool found = false;
    for_each("SELECT 1 FROM pragma_table_info('" + table + "') WHERE name = '" + column + "'",
             [&](sqlite3_stmt* /*row*/) { found = true; });
    return found;
  }

  template <class Use>
  void for_each(const std::string& sql, Use use) {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) {
      fail();
    }
    const statement_pointer statement(prepared);
    int status = sqlite3_step(prepared);
    for (; status == SQLITE_ROW; status = sqlite3_step(prepared)) use(prepared);
    if (status != SQLITE_DONE) fail();
  }

 private:
  static read_budget budget_of(const std::string& path) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    return {error ? 0 : bytes};
  }

  [[noreturn]] void fail() const {
    throw input_error(path_ +
                      ": not readable as a database of nsys: " + sqlite3_errmsg(database_.get()));
  }

  std::string path_;
  bounded_database database_;
};

std::string_view text_of(sqlite3_stmt* row, int column) {
  const unsigned char* const text = sqlite3_column_text(row, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
}

constexpr std::array<const char*, 3> work_tables{
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"};

/// Values of NVTX_EVENTS.eventType for pushed or started ranges, without or with a payload.
constexpr const char* range_types = "(59, 60, 70, 71)";
/// Value of NVTX_EVENTS.eventType for the name of a domain.
constexpr const char* domain_type = "75";

/// Words that may precede the number in the names of training steps, the preferred ones first. Only
/// the first word that occurs in the trace is used.
constexpr std::array<std::string_view, 7> step_words{
    "profilerstep", "step", "train_step", "training_step", "iteration", "iter", "batch"};

struct named_step {
  std::size_t word = 0;  ///< index in step_words
  std::uint64_t number = 0;
};

/// Reads "step 12", "Iteration: 12" or "ProfilerStep#12"; nullopt for other texts.
std::optional<named_step> step_of(std::string_view text) {
  const std::size_t digits = text.find_last_not_of("0123456789") + 1;
  named_step step;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + digits, end, step.number).ec != std::errc()) {
    return std::nullopt;
  }
  text = text.substr(0, digits);
  text = text.substr(0, text.find_last_not_of(" #:=_-") + 1);
  std::string word;
  for (const char c : text) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto* const at = std::find(step_words.begin(), step_words.end(), word);
  if (at == step_words.end()) return std::nullopt;
  step.word = static_cast<std::size_t>(at - step_words.begin());
  return step;
}

/// Returns the process in nsys's number of a process or thread. The upper bits of such a number are
/// the machine and the process, the lower 24 bits the thread.
std::uint64_t process_of(std::int64_t serialized) noexcept {
  return static_cast<std::uint64_t>(serialized) >> 24U;
}

class nsys_reader {
 public:
  nsys_reader(const std::string& path, std::optional<std::int64_t> process)
      : database_(path), process_(process) {
    trace_.path = path;
  }

  device_trace read() {
    if (database_.has("TARGET_INFO_SESSION_START_TIME")) {
      database_.for_each("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME",
                         [&](sqlite3_stmt* row) { trace_.base_ns = sqlite3_column_int64(row, 0); });
    }
    read_work("CUPTI_ACTIVITY_KIND_KERNEL", "0, value, 0, 0",
              "LEFT JOIN StringIds ON StringIds.id = demangledName", [this](sqlite3_stmt* row) {
                device_work work;
                const std::string name(text_of(row, first_special + 1));
                work.kind = work_kind_of(name);
                work.name = trace_.names.number_of(name);
                return work;
              });
    read_work("CUPTI_ACTIVITY_KIND_MEMCPY", "bytes, copyKind, srcKind, dstKind", "",
              [](sqlite3_stmt* row) {
                device_work work;
                work.kind = work_kind::copy;
                work.copy = copy_kind_of_number(sqlite3_column_int64(row, first_special + 1));
                const bool in = work.copy == copy_kind::to_device;
                if (in || work.copy == copy_kind::to_host) {
                  work.memory = host_memory_of_number(
                      sqlite3_column_int64(row, first_special + (in ? 2 : 3)));
                }
                return work;
              });
    read_work("CUPTI_ACTIVITY_KIND_MEMSET", "bytes, 0, 0, 0", "", [](sqlite3_stmt* /*row*/) {
      device_work work;
      work.kind = work_kind::set_memory;
      return work;
    });
    read_calls();
    read_ranges();
    for (const std::string table : {"MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS"}) {
      if (database_.has(table)) read_mpi(table);
    }
    if (trace_.work.empty()) {
      throw input_error(trace_.path +
                        ": no work of an accelerator: it has no rows in "
                        "CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY or _MEMSET");
    }
    return std::move(trace_);
  }

 private:
  static constexpr int first_special = 5;

  /// Adds the kernels, copies or memsets in a table to the trace.
  /// @param special  SQL for the last four columns of the result, which depend on the table; the
  ///   first of them contains the number of bytes.
  /// @param make     returns the device_work for a row, without the values that all tables have.
  template <class Make>
  void read_work(const std::string& table, const std::string& special, const std::string& join,
                 Make make) {
    if (!database_.has(table)) return;
    const std::string of_process =
        process_ ? " WHERE globalPid = " + std::to_string(*process_) : std::string();
    database_.for_each(
        "SELECT start, \"end\", deviceId, streamId, correlationId, " + special + " FROM " + table +
            " " + join + of_process + " ORDER BY start",
        [&](sqlite3_stmt* row) {
          device_work work = make(row);
          work.start_ns = sqlite3_column_int64(row, 0);
          work.end_ns = sqlite3_column_int64(row, 1);
          work.correlation = static_cast<std::uint64_t>(sqlite3_column_int64(row, 4));
          work.bytes = static_cast<std::uint64_t>(sqlite3_column_int64(row, first_special));
          work.stream = stream_of({sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3)});
          trace_.work.push_back(work);
        });
  }

  void read_calls() {
    if (!database_.has("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
    database_.for_each(
        "SELECT start, \"end\", correlationId, globalTid, value FROM CUPTI_ACTIVITY_KIND_RUNTIME "
        "LEFT JOIN StringIds ON StringIds.id = nameId",
        [&](sqlite3_stmt* row) {
          if (!counts(sqlite3_column_int64(row, 3))) return;
          std::string_view name = text_of(row, 4);
          name = name.substr(0, name.rfind("_v"));  // the version of CUDA's interface
          const call_kind kind = call_kind_of(name);
          trace_.calls.push_back({sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
                                  static_cast<std::uint64_t>(sqlite3_column_int64(row, 2)), 0,
                                  thread_of(sqlite3_column_int64(row, 3)),
                                  trace_.names.number_of(std::string(name)), kind,
                                  kind == call_kind::copy ? copy_kind_of(name) : copy_kind::none});
        });
  }

  /// Returns whether a thread belongs to the process whose trace is read.
  bool counts(std::int64_t global_thread) const noexcept {
    return !process_ || process_of(global_thread) == process_of(*process_);
  }

  /// Returns a column of NVTX_EVENTS; if an older version of nsys lacks it, returns `otherwise`.
  std::string column_or(const std::string& column, const std::string& otherwise) {
    return database_.has_column("NVTX_EVENTS", column) ? column : otherwise;
  }

  void read_ranges() {
    if (!database_.has("NVTX_EVENTS")) return;
    const std::string domain = column_or("domainId", "0");
    const bool by_id = database_.has_column("NVTX_EVENTS", "textId");
    const std::string from =
        " FROM NVTX_EVENTS " +
        std::string(by_id ? "LEFT JOIN StringIds ON StringIds.id = textId" : "") +
        " WHERE eventType ";
    const std::string text = by_id ? "COALESCE(text, value)" : "text";
    // The NVTX domains in which Lotus records, as pairs of a process and a domain's number.
    std::set<std::pair<std::uint64_t, std::int64_t>> of_lotus;
    database_.for_each("SELECT globalTid, " + domain + ", " + text + from + "= " + domain_type,
                       [&](sqlite3_stmt* row) {
                         if (text_of(row, 2) != "lotus") return;
                         of_lotus.emplace(process_of(sqlite3_column_int64(row, 0)),
                                          sqlite3_column_int64(row, 1));
                       });
    std::array<std::vector<profiler_step>, step_words.size()> steps;
    database_.for_each(
        "SELECT start, \"end\", globalTid, " + domain + ", " + text + ", " +
            column_or("uint64Value", "NULL") + from + "IN " + range_types +
            " AND \"end\" IS NOT NULL ORDER BY start",
        [&](sqlite3_stmt* row) {
          const std::int64_t thread = sqlite3_column_int64(row, 2);
          if (!counts(thread)) return;
          const thread_range range{sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
                                   thread_of(thread)};
          const std::string_view name = text_of(row, 4);
          if (of_lotus.count({process_of(thread), sqlite3_column_int64(row, 3)}) != 0) {
            add_range_of_lotus(range, name, row);
          } else if (is_wait_of_loader(name)) {
            add_wait_of_loader(trace_, range, name);
          } else if (const std::optional<named_step> step = step_of(name)) {
            steps[step->word].push_back({range.start_ns, range.end_ns, step->number});
          } else if (!name.empty()) {
            const bool is_operator = name.substr(0, 6) == "aten::";
            trace_.ranges.push_back({range, trace_.names.number_of(std::string(name)),
                                     is_operator ? range_kind::framework : range_kind::annotation});
          }
        });
    for (std::vector<profiler_step>& of_word : steps) {
      if (of_word.empty()) continue;
      trace_.steps = std::move(of_word);
      break;
    }
  }

  /// Adds the calls of MPI as named ranges.
  void read_mpi(const std::string& table) {
    database_.for_each(
        "SELECT start, \"end\", globalTid, value FROM " + table +
            " LEFT JOIN StringIds ON StringIds.id = textId WHERE \"end\" IS NOT NULL",
        [&](sqlite3_stmt* row) {
          const std::int64_t thread = sqlite3_column_int64(row, 2);
          if (!counts(thread)) return;
          const thread_range range{sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
                                   thread_of(thread)};
          trace_.ranges.push_back({range, trace_.names.number_of(std::string(text_of(row, 3))),
                                   range_kind::annotation});
        });
  }

  void add_range_of_lotus(const thread_range& range, std::string_view name, sqlite3_stmt* row) {
    if (name == copy_scope_name) trace_.copies.push_back(range);
    if (name != wait_scope_name) return;
    wait_range wait{range, std::nullopt, true};
    if (sqlite3_column_type(row, 5) != SQLITE_NULL) {
      wait.batch = static_cast<std::uint64_t>(sqlite3_column_int64(row, 5));
    }
    trace_.waits.push_back(wait);
  }

  std::uint32_t stream_of(const std::pair<std::int64_t, std::int64_t>& key) {
    const auto [at, added] =
        streams_.try_emplace(key, static_cast<std::uint32_t>(trace_.streams.size()));
    if (added) trace_.streams.push_back({key.first, key.second});
    return at->second;
  }

  /// Returns the index of a thread in device_trace::threads, and adds the thread if it is new.
  /// `global` is nsys's number of the thread, in which the process and the thread have 24 bits
  /// each.
  std::uint32_t thread_of(std::int64_t global) {
    const auto [at, added] =
        threads_.try_emplace(global, static_cast<std::uint32_t>(trace_.threads.size()));
    if (added) {
      const auto packed = static_cast<std::uint64_t>(global);
      trace_.threads.push_back({(packed >> 24U) & 0xFFFFFFU, packed & 0xFFFFFFU});
    }
    return at->second;
  }

  nsys_database database_;
  std::optional<std::int64_t> process_;
  device_trace trace_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> streams_;
  std::map<std::int64_t, std::uint32_t> threads_;
};

}  // namespace

std::vector<std::optional<std::int64_t>> processes_of_nsys(const std::string& path) {
  nsys_database database(path);
  std::set<std::int64_t> found;
  for (const std::string table : work_tables) {
    if (!database.has(table)) continue;
    if (!database.has_column(table, "globalPid")) return {std::nullopt};
    database.for_each("SELECT DISTINCT globalPid FROM " + table,
                      [&](sqlite3_stmt* row) { found.insert(sqlite3_column_int64(row, 0)); });
  }
  if (found.size() < 2) return {std::nullopt};
  return {found.begin(), found.end()};
}

device_trace read_nsys_database(const std::string& path, std::optional<std::int64_t> process) {
  return nsys_reader(path, process).read();
}

#else

std::vector<std::optional<std::int64_t>> processes_of_nsys(const std::string& path) {
  throw input_error(path +
                    ": a database, which this lotus-tool cannot read: it was built without "
                    "SQLite");
}

device_trace read_nsys_database(const std::string& path, std::optional<std::int64_t> /*process*/) {
  processes_of_nsys(path);
  return {};
}

#endif

}  // namespace lotus::tool
