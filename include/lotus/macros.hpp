// All public macros; no other header reads LOTUS_DISABLE.
#ifndef LOTUS_MACROS_HPP
#define LOTUS_MACROS_HPP

#include <string_view>

#include "lotus/batch.hpp"
#include "lotus/collector.hpp"
#include "lotus/config.hpp"
#include "lotus/counter.hpp"
#include "lotus/loader.hpp"
#include "lotus/map.hpp"
#include "lotus/scope.hpp"
#include "lotus/scope_arguments.hpp"
#include "lotus/stage.hpp"

// Makes a unique name, so that two macros may be used on one line or inside one macro of the
// user's.
#if defined(__COUNTER__)
  #define LOTUS_DETAIL_UNIQUE(name) LOTUS_DETAIL_CONCAT(name, __COUNTER__)
#else
  #define LOTUS_DETAIL_UNIQUE(name) LOTUS_DETAIL_CONCAT(name, __LINE__)
#endif

// clang 22's -Wpedantic reports __COUNTER__ as an extension where it is expanded, which is in the
// user's code. The warning stays off after this header: a pragma inside the macros takes effect too
// late if a scope is in an argument of another macro, such as a test's assertion.
#if defined(__clang__)
  #if __has_warning("-Wc2y-extensions")
    #pragma clang diagnostic ignored "-Wc2y-extensions"
  #endif
#endif

// Each scope macro is one declaration, so it is safe after `if (c)`; each event macro is one
// expression. With LOTUS_DISABLE the arguments are still type-checked and never evaluated.
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
  #define LOTUS_DETAIL_SITE(literal)                                            \
    []() noexcept {                                                             \
      struct lotus_here {                                                       \
        static constexpr ::std::string_view name() noexcept { return literal; } \
      };                                                                        \
      return ::lotus::detail::place<lotus_here, true>{lotus_here::name()};      \
    }()
  // The spelling of the argument shows whether the name is a literal.
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

/// Logs "S<name>" for the time from here to the end of the block. The name is a string literal.
#define LOTUS_SCOPE(name) LOTUS_DETAIL_SCOPE(scope, LOTUS_DETAIL_SITE(name))
/// The same with a name known only at run time: anything convertible to std::string_view.
#define LOTUS_SCOPE_DYNAMIC(name) LOTUS_DETAIL_SCOPE(scope, ::std::string_view{name})

/// LOTUS_SCOPE that also stores the operation's arguments as text: LOTUS_SCOPE_ARGS("Resize",
/// image.shape()); see lotus::scope_with_arguments. The name is a literal or anything convertible
/// to std::string_view.
#define LOTUS_SCOPE_ARGS(name, ...) \
  LOTUS_DETAIL_SCOPE_WITH(scope_with_arguments, LOTUS_DETAIL_PLACE(name), __VA_ARGS__)

/// Aggregates the time from here to the end of the block instead of logging it: for operations that
/// take about a microsecond; see lotus::aggregated_scope. The name is a literal or anything
/// convertible to std::string_view.
#define LOTUS_SCOPE_AGGREGATED(name) LOTUS_DETAIL_SCOPE(aggregated_scope, LOTUS_DETAIL_PLACE(name))

/// Scope in a worker around all the work that builds batch `i`.
#define LOTUS_BATCH_PREPROCESSED(i) \
  LOTUS_DETAIL_SCOPE(batch_preprocessed, static_cast<::std::uint64_t>(i))
/// Scope in the consumer around its wait for batch `i`.
#define LOTUS_BATCH_WAIT(i) LOTUS_DETAIL_SCOPE(batch_wait, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` arrived out of order and is buffered.
#define LOTUS_BATCH_ARRIVED(i) LOTUS_DETAIL_EVENT(batch_arrived, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` was received, and the step begins.
#define LOTUS_BATCH_CONSUMED(i) LOTUS_DETAIL_EVENT(batch_consumed, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` is dispatched to a worker.
#define LOTUS_BATCH_QUEUED(i) LOTUS_DETAIL_EVENT(batch_queued, static_cast<::std::uint64_t>(i))

/// Scope: this thread works on batch (or item, or request) `i` in the stage `name`, which is a
/// literal or anything convertible to std::string_view; see lotus::stage.
#define LOTUS_STAGE(name, i) \
  LOTUS_DETAIL_SCOPE_OF_TWO(stage, LOTUS_DETAIL_PLACE(name), static_cast<::std::uint64_t>(i))
/// Item `item` becomes part of batch `batch`; see lotus::batch_takes.
#define LOTUS_BATCH_TAKES(batch, item)                                        \
  LOTUS_DETAIL_EVENT_OF_TWO(batch_takes, static_cast<::std::uint64_t>(batch), \
                            static_cast<::std::uint64_t>(item))
/// Until the end of the block, all records of this thread belong to the loader `name`; see
/// lotus::loader_scope.
#define LOTUS_LOADER(name) LOTUS_DETAIL_SCOPE(loader_scope, ::std::string_view{name})
/// Sets the counter `name` (a literal or anything convertible to std::string_view) to `n`.
#define LOTUS_COUNTER(name, n) \
  LOTUS_DETAIL_EVENT_OF_TWO(counter, LOTUS_DETAIL_PLACE(name), static_cast<::std::int64_t>(n))

/// Resumes the profiler that runs this program, if any; see lotus::collector.
#define LOTUS_RESUME() LOTUS_DETAIL_COLLECTOR(resume)
/// Pauses the profiler; call it once for each LOTUS_RESUME().
#define LOTUS_PAUSE() LOTUS_DETAIL_COLLECTOR(pause)
/// Detaches the profiler: it collects nothing more until the program ends.
#define LOTUS_DETACH() LOTUS_DETAIL_COLLECTOR(detach)

/// For a probe program: LOTUS_MAP_REGION("Crop", in, out) { out = crop(in); } The block is one
/// operation. Under a collector it runs for warm-up (LOTUS_MAP_WARMUP passes, 4 by default), then
/// for LOTUS_MAP_PASSES (1) passes that are collected and logged like a scope; without a collector
/// it runs exactly once. LOTUS_MAP_OP selects the only region to collect. After the name, list the
/// variables that the block reads and writes, so that the compiler moves no work on them out of the
/// block.
// clang's analyzer does not see that the innermost region is restored if many regions follow one
// another.
// NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape)
#define LOTUS_MAP_REGION(...) LOTUS_DETAIL_REGION(LOTUS_DETAIL_UNIQUE(lotus_region_), __VA_ARGS__)

#endif  // LOTUS_MACROS_HPP
