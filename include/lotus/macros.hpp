// Provides all public macros. With LOTUS_DISABLE they record nothing.
#ifndef LOTUS_MACROS_HPP
#define LOTUS_MACROS_HPP

#include <string_view>

#include "lotus/batch.hpp"
#include "lotus/config.hpp"
#include "lotus/map.hpp"
#include "lotus/record_span.hpp"
#include "lotus/scope.hpp"
#include "lotus/scope_arguments.hpp"
#include "lotus/stage.hpp"

// Creates a unique variable name, so that the program can have two scopes on one line or in one
// macro.
#if defined(__COUNTER__)
  #define LOTUS_DETAIL_UNIQUE(name) LOTUS_DETAIL_CONCAT(name, __COUNTER__)
#else
  #define LOTUS_DETAIL_UNIQUE(name) LOTUS_DETAIL_CONCAT(name, __LINE__)
#endif

// With -Wpedantic, clang 22 warns about __COUNTER__ in the user's code, where the macros are
// expanded. So the warning stays off after this header. A pragma inside the macros would take
// effect too late if a scope is used in an argument of another macro, such as an assertion.
#if defined(__clang__)
  #if __has_warning("-Wc2y-extensions")
    #pragma clang diagnostic ignored "-Wc2y-extensions"
  #endif
#endif

// Each scope macro expands to one declaration, so it can follow `if (c)` without braces; each event
// macro expands to one expression. With LOTUS_DISABLE, arguments are type-checked but not
// evaluated.
#if defined(LOTUS_DISABLE)
  #define LOTUS_DETAIL_SCOPE(type, argument)                       \
    [[maybe_unused]] const int LOTUS_DETAIL_UNIQUE(lotus_scope_) = \
        true ? 0 : (static_cast<void>(argument), 0)
  #define LOTUS_DETAIL_SITE(name) (name)
  #define LOTUS_DETAIL_PLACE(name) (name)
  #define LOTUS_DETAIL_SCOPE_OF_TWO(type, first, second)           \
    [[maybe_unused]] const int LOTUS_DETAIL_UNIQUE(lotus_scope_) = \
        true ? 0 : (static_cast<void>(first), static_cast<void>(second), 0)
  #define LOTUS_DETAIL_SCOPE_WITH(type, first, ...)                \
    [[maybe_unused]] const int LOTUS_DETAIL_UNIQUE(lotus_scope_) = \
        true ? 0                                                   \
             : (static_cast<void>(first),                          \
                static_cast<void>(::lotus::detail::arguments_text{__VA_ARGS__}), 0)
  #define LOTUS_DETAIL_EVENT(function, argument) \
    static_cast<void>(true ? 0 : (static_cast<void>(argument), 0))
  #define LOTUS_DETAIL_EVENT_OF_TWO(function, first, second) \
    static_cast<void>(true ? 0 : (static_cast<void>(first), static_cast<void>(second), 0))
  #define LOTUS_DETAIL_COLLECTOR(function) static_cast<void>(0)
  #define LOTUS_DETAIL_REGION(variable, ...) \
    for (bool variable = true; variable;     \
         variable = true ? false             \
                         : (static_cast<void>(::lotus::fenced_map_region{__VA_ARGS__}), false))
#else
  #define LOTUS_DETAIL_SCOPE(type, argument)                \
    const ::lotus::type LOTUS_DETAIL_UNIQUE(lotus_scope_) { \
      argument                                              \
    }
  #define LOTUS_DETAIL_SITE(literal)                                                      \
    []() noexcept {                                                                       \
      static_assert(                                                                      \
          ::lotus::detail::is_literal(#literal),                                          \
          "LOTUS_SCOPE takes a string literal; for other names use LOTUS_SCOPE_DYNAMIC"); \
      struct lotus_here {                                                                 \
        static constexpr ::std::string_view name() noexcept { return literal; }           \
      };                                                                                  \
      return ::lotus::detail::place<lotus_here, true>{lotus_here::name()};                \
    }()
  // #name is the argument as it is written in the source, which shows whether it is a string
  // literal.
  #define LOTUS_DETAIL_PLACE(name) LOTUS_DETAIL_PLACE_OF(name, #name)
  #define LOTUS_DETAIL_PLACE_OF(name, written)                                                \
    [](::std::string_view given) noexcept {                                                   \
      struct lotus_here {};                                                                   \
      return ::lotus::detail::place<lotus_here, ::lotus::detail::is_literal(written)>{given}; \
    }(name)
  #define LOTUS_DETAIL_SCOPE_OF_TWO(type, first, second)    \
    const ::lotus::type LOTUS_DETAIL_UNIQUE(lotus_scope_) { \
      first, second                                         \
    }
  #define LOTUS_DETAIL_SCOPE_WITH(type, first, ...)         \
    const ::lotus::type LOTUS_DETAIL_UNIQUE(lotus_scope_) { \
      first, __VA_ARGS__                                    \
    }
  #define LOTUS_DETAIL_EVENT(function, argument) ::lotus::function(argument)
  #define LOTUS_DETAIL_EVENT_OF_TWO(function, first, second) ::lotus::function(first, second)
  #define LOTUS_DETAIL_COLLECTOR(function) ::lotus::collector::function()
  #define LOTUS_DETAIL_REGION(variable, ...) \
    for (::lotus::fenced_map_region variable{__VA_ARGS__}; variable.next();)
#endif

/// Records the time from here to the end of the block as the operation "S<name>". The name must be
/// a string literal.
#define LOTUS_SCOPE(name) LOTUS_DETAIL_SCOPE(scope, LOTUS_DETAIL_SITE(name))
/// Works like LOTUS_SCOPE; the name may be anything convertible to std::string_view.
#define LOTUS_SCOPE_DYNAMIC(name) LOTUS_DETAIL_SCOPE(scope, ::std::string_view{name})

/// Works like LOTUS_SCOPE and also records the operation's arguments as text, for example
/// LOTUS_SCOPE_ARGS("Resize", image.shape()); see lotus::scope_with_arguments. The name is a
/// literal or anything convertible to std::string_view.
#define LOTUS_SCOPE_ARGS(name, ...) \
  LOTUS_DETAIL_SCOPE_WITH(scope_with_arguments, LOTUS_DETAIL_PLACE(name), __VA_ARGS__)

/// Counts the operation and sums up its durations, instead of recording each execution. Use it for
/// operations that take about a microsecond; see lotus::aggregated_scope. The name is a literal or
/// anything convertible to std::string_view.
#define LOTUS_SCOPE_AGGREGATED(name) LOTUS_DETAIL_SCOPE(aggregated_scope, LOTUS_DETAIL_PLACE(name))

/// Records the building of batch `i` up to the end of the block; see lotus::batch_preprocessed.
#define LOTUS_BATCH_PREPROCESSED(i) \
  LOTUS_DETAIL_SCOPE(batch_preprocessed, static_cast<::std::uint64_t>(i))
/// Records the consumer's wait for batch `i`, up to the end of the block; see lotus::batch_wait.
#define LOTUS_BATCH_WAIT(i) LOTUS_DETAIL_SCOPE(batch_wait, static_cast<::std::uint64_t>(i))
/// Records that batch `i` arrived out of order and was buffered; see lotus::batch_arrived.
#define LOTUS_BATCH_ARRIVED(i) LOTUS_DETAIL_EVENT(batch_arrived, static_cast<::std::uint64_t>(i))
/// Records that the consumer received batch `i` and begins its step; see lotus::batch_consumed.
#define LOTUS_BATCH_CONSUMED(i) LOTUS_DETAIL_EVENT(batch_consumed, static_cast<::std::uint64_t>(i))
/// Records that batch `i` was dispatched to a worker; see lotus::batch_queued.
#define LOTUS_BATCH_QUEUED(i) LOTUS_DETAIL_EVENT(batch_queued, static_cast<::std::uint64_t>(i))

/// Records that this thread works on batch, item or request `i` in the stage `name`, up to the end
/// of the block; see lotus::stage. The name is a literal or anything convertible to
/// std::string_view.
#define LOTUS_STAGE(name, i) \
  LOTUS_DETAIL_SCOPE_OF_TWO(stage, LOTUS_DETAIL_PLACE(name), static_cast<::std::uint64_t>(i))
/// Records that item `item` becomes part of batch `batch`; see lotus::batch_takes.
#define LOTUS_BATCH_TAKES(batch, item)                                        \
  LOTUS_DETAIL_EVENT_OF_TWO(batch_takes, static_cast<::std::uint64_t>(batch), \
                            static_cast<::std::uint64_t>(item))
/// Assigns this thread's records to the loader `name` until the end of the block; see loader_scope.
#define LOTUS_LOADER(name) LOTUS_DETAIL_SCOPE(loader_scope, ::std::string_view{name})
/// Sets the counter `name` (a literal or anything convertible to std::string_view) to `n`.
#define LOTUS_COUNTER(name, n) \
  LOTUS_DETAIL_EVENT_OF_TWO(counter, LOTUS_DETAIL_PLACE(name), static_cast<::std::int64_t>(n))

/// Resumes the profiler under which this program runs, if any; see lotus::collector.
#define LOTUS_RESUME() LOTUS_DETAIL_COLLECTOR(resume)
/// Pauses the profiler. Each LOTUS_RESUME() needs one LOTUS_PAUSE().
#define LOTUS_PAUSE() LOTUS_DETAIL_COLLECTOR(pause)
/// Detaches the profiler, which then collects nothing more until the program ends.
#define LOTUS_DETACH() LOTUS_DETAIL_COLLECTOR(detach)

/// Runs a block so that a profiler collects data only about this block:
///
///   LOTUS_MAP_REGION("Crop", in, out) { out = crop(in); }
///
/// The block should contain one operation. With a profiler, the block first runs LOTUS_MAP_WARMUP
/// times (an environment variable; default: 4) to warm up, and then LOTUS_MAP_PASSES times
/// (default: 1) while the profiler collects data; lotus also records these passes as an operation.
/// Without a profiler, the block runs once. If the variable LOTUS_MAP_OP is set, the profiler
/// collects data only in the region of that name. After the name, list the variables that the block
/// reads and writes, so that the compiler does not move computations with them out of the block.
// While the block runs, a thread-local variable contains the address of the region object. clang's
// analyzer does not see that the address is removed at the end, and would report an escaping stack
// address.
// NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape)
#define LOTUS_MAP_REGION(...) LOTUS_DETAIL_REGION(LOTUS_DETAIL_UNIQUE(lotus_region_), __VA_ARGS__)

#endif  // LOTUS_MACROS_HPP
