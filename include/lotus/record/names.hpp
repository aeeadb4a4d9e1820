// Defines how the names of operations are written in log lines, and a table that maps names to ids.
#ifndef LOTUS_RECORD_NAMES_HPP
#define LOTUS_RECORD_NAMES_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr std::size_t max_name_bytes = 1024;  ///< longer names are cut to this length
inline constexpr std::size_t max_line_name_bytes = 1 + 3 * max_name_bytes;

/// Writes "S" and the name to `out` in the form that log lines contain. `out` must have room for
/// max_line_name_bytes. Returns the number of bytes written. Bytes that would end a field or a line
/// are replaced by %XX: control bytes, bytes from 0x7f on, commas, quotes, percent signs, and a
/// blank at either end. The B of a name that begins with "Batch" is replaced too, so that no name
/// looks like a batch record. lotus-tool reverses the replacement.
inline std::size_t write_line_name(std::string_view name, char* out) noexcept {
  constexpr char hex[] = "0123456789ABCDEF";
  const std::size_t length = name.size() < max_name_bytes ? name.size() : max_name_bytes;
  const bool like_batch = name.substr(0, 5) == "Batch";
  char* p = out;
  *p++ = 'S';
  for (std::size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool edge_blank = c == ' ' && (i == 0 || i + 1 == length);
    if (c < 0x20 || c >= 0x7f || c == ',' || c == '"' || c == '%' || edge_blank ||
        (i == 0 && like_batch)) {
      *p++ = '%';
      *p++ = hex[c >> 4];
      *p++ = hex[c & 15];
    } else {
      *p++ = static_cast<char>(c);
    }
  }
  return static_cast<std::size_t>(p - out);
}

/// A name in a name_table. Entries exist until the process exits.
struct name_entry {
  std::uint64_t hash;
  std::uint32_t id;
  std::uint16_t raw_bytes;
  std::uint16_t line_bytes;
  /// Handle of this name in another profiler's annotation interface, such as ITT. Only the code for
  /// that interface uses it.
  mutable std::atomic<void*> task_handle;
  // This struct is followed in memory by the raw name, and then by the start of a line: "S<name>,".

  std::string_view raw() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), raw_bytes};
  }
  std::string_view line_start() const noexcept {
    return {reinterpret_cast<const char*>(this + 1) + raw_bytes, line_bytes};
  }
};

/// The text for unnamed_id, the id of all names that the table has no room for. Ring files do not
/// contain this text: recovery uses the constants here.
inline constexpr std::string_view unnamed_name = "(unnamed)";
inline constexpr std::string_view unnamed_line_start = "S(unnamed),";
/// The start of a log line if the ring file does not contain the name of the operation.
inline constexpr std::string_view lost_line_start = "Sname_lost,";

/// A function object that returns the start of a log line, "S<name>,", for the id of a name.
struct name_lookup {
  const void* table;
  std::string_view (*line_start)(const void* table, std::uint64_t id) noexcept;

  std::string_view operator()(std::uint64_t id) const noexcept { return line_start(table, id); }
};

/// Maps each name to an id. Ids count from 1; a name for which there is no room gets unnamed_id.
/// Looking up a name that is already in the table takes no lock. Nothing is ever freed, so ids and
/// entries stay valid until the process exits. All functions are thread-safe, also in signal
/// handlers.
class name_table {
 public:
  static constexpr std::uint32_t limit = unnamed_id - 1;  ///< maximum number of names

  /// @param max_names  at most `limit`.
  explicit name_table(std::uint32_t max_names = limit) noexcept : max_names_{max_names} {
    put(unnamed_, 0, unnamed_id, unnamed_name, unnamed_line_start);
  }

  std::uint32_t intern(std::string_view name) noexcept {
    name = name.substr(0, max_name_bytes);
    const std::uint64_t hash = hash_of(name);
    if (const name_entry* found = find(name, hash)) return found->id;
    if (size() >= max_names_) return unnamed_id;
    const signals_blocked quiet;
    const locked hold{mutex_};
    if (const name_entry* found = find(name, hash)) return found->id;
    return add(name, hash);
  }

  /// Returns the entry of a name. @param id  a result of intern().
  const name_entry& entry(std::uint32_t id) const noexcept {
    if (LOTUS_DETAIL_UNLIKELY(id == unnamed_id)) {
      return *reinterpret_cast<const name_entry*>(unnamed_);
    }
    const name_page* page = pages_[(id - 1) / page_names].load(std::memory_order_acquire);
    return *page->entries[(id - 1) % page_names].load(std::memory_order_acquire);
  }

  std::uint32_t size() const noexcept { return count_.load(); }

  /// Returns the start of a log line, "S<name>,". Accepts any number, because a damaged ring file
  /// may contain any id.
  std::string_view line_start(std::uint64_t id) const noexcept {
    if (id != 0 && (id <= size() || id == unnamed_id)) {
      return entry(static_cast<std::uint32_t>(id)).line_start();
    }
    return lost_line_start;
  }
  name_lookup line_starts() const noexcept {
    return {this, [](const void* table, std::uint64_t id) noexcept {
              return static_cast<const name_table*>(table)->line_start(id);
            }};
  }

  mutex& fork_lock() noexcept { return mutex_; }

 private:
  static constexpr std::size_t page_names = 4096;
  static constexpr std::size_t max_pages = limit / page_names + 1;
  static constexpr std::size_t arena_bytes = std::size_t{1} << 18;

  struct name_page {
    std::atomic<const name_entry*> entries[page_names];
  };
  struct index {
    std::size_t slots;  ///< number of slots, a power of two; the slots follow this struct
    std::atomic<const name_entry*>* data() noexcept {
      return reinterpret_cast<std::atomic<const name_entry*>*>(this + 1);
    }
  };

  /// Hashes with FNV-1a (Fowler, Noll, Vo; 64 bits), which is fast for short texts such as names.
  static std::uint64_t hash_of(std::string_view name) noexcept {
    std::uint64_t h = 14695981039346656037U;
    for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return h;
  }

  const name_entry* find(std::string_view name, std::uint64_t hash) const noexcept {
    index* in = index_.load(std::memory_order_acquire);
    if (in == nullptr) return nullptr;
    for (std::uint64_t i = hash;; ++i) {
      const name_entry* e = in->data()[i & (in->slots - 1)].load(std::memory_order_acquire);
      if (e == nullptr || (e->hash == hash && e->raw() == name)) return e;
    }
  }

  static void place(index& in, const name_entry& e) noexcept {
    std::uint64_t i = e.hash;
    while (in.data()[i & (in.slots - 1)].load(std::memory_order_relaxed) != nullptr) ++i;
    in.data()[i & (in.slots - 1)].store(&e, std::memory_order_release);
  }

  /// Returns an index (a hash table of the names) that will be at most half full when one more name
  /// is added. An index that is replaced by a larger one is not freed, because other threads may
  /// still be reading it.
  index* roomy_index() noexcept {
    index* in = index_.load(std::memory_order_relaxed);
    const std::size_t needed = (std::size_t{size()} + 1) * 2;
    if (in != nullptr && needed <= in->slots) return in;
    const std::size_t slots = in == nullptr ? 1024 : in->slots * 2;
    void* memory = map_memory(sizeof(index) + slots * sizeof(std::atomic<const name_entry*>));
    if (memory == nullptr) return nullptr;
    auto* grown = new (memory) index{slots};
    for (std::uint32_t id = 1; id <= size(); ++id) place(*grown, entry(id));
    index_.store(grown, std::memory_order_release);
    return grown;
  }

  void* allocate(std::size_t bytes) noexcept {
    bytes = (bytes + 7) & ~std::size_t{7};
    if (arena_left_ < bytes) {
      void* fresh = map_memory(arena_bytes);
      if (fresh == nullptr) return nullptr;
      arena_ = static_cast<char*>(fresh);
      arena_left_ = arena_bytes;
    }
    void* p = arena_;
    arena_ += bytes;
    arena_left_ -= bytes;
    return p;
  }

  /// Creates an entry in `memory`, which must have room for a name_entry, followed by the texts
  /// `name` and `line`.
  static const name_entry* put(void* memory, std::uint64_t hash, std::uint32_t id,
                               std::string_view name, std::string_view line) noexcept {
    auto* e = new (memory) name_entry{hash, id, static_cast<std::uint16_t>(name.size()),
                                      static_cast<std::uint16_t>(line.size()), nullptr};
    auto* text = reinterpret_cast<char*>(e + 1);
    if (!name.empty()) std::memcpy(text, name.data(), name.size());
    std::memcpy(text + name.size(), line.data(), line.size());
    return e;
  }

  std::uint32_t add(std::string_view name, std::uint64_t hash) noexcept {
    if (size() >= max_names_) return unnamed_id;
    const std::uint32_t id = size() + 1;
    auto& page_slot = pages_[(id - 1) / page_names];
    name_page* page = page_slot.load(std::memory_order_relaxed);
    if (page == nullptr) {
      page = static_cast<name_page*>(map_memory(sizeof(name_page)));
      if (page == nullptr) return unnamed_id;
      page_slot.store(page, std::memory_order_release);
    }
    index* in = roomy_index();
    char line[max_line_name_bytes + 1];
    std::size_t line_bytes = write_line_name(name, line);
    line[line_bytes++] = ',';
    void* memory = allocate(sizeof(name_entry) + name.size() + line_bytes);
    if (in == nullptr || memory == nullptr) return unnamed_id;
    const name_entry* e = put(memory, hash, id, name, {line, line_bytes});
    page->entries[(id - 1) % page_names].store(e, std::memory_order_release);
    count_.store(id);
    place(*in, *e);
    return id;
  }

  const std::uint32_t max_names_;
  /// The entry with unnamed_id, created in advance because it is used when memory has run out.
  alignas(name_entry) char unnamed_[sizeof(name_entry) + unnamed_name.size() +
                                    unnamed_line_start.size()];
  mutex mutex_;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<index*> index_{nullptr};
  std::atomic<name_page*> pages_[max_pages]{};
  char* arena_ = nullptr;
  std::size_t arena_left_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_NAMES_HPP
