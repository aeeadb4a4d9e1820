// Every public macro; the only reader of LOTUS_DISABLE.
#ifndef LOTUS_MACROS_HPP
#define LOTUS_MACROS_HPP

#include <string_view>

#include "lotus/batch.hpp"
#include "lotus/collector.hpp"
#include "lotus/config.hpp"
#include "lotus/map.hpp"
#include "lotus/scope.hpp"

// Each scope macro is one declaration, so it is safe after `if (c)`; each event macro is one
// expression. With LOTUS_DISABLE the arguments are still type-checked and never evaluated.
#if defined(LOTUS_DISABLE)
  #define LOTUS_DETAIL_SCOPE(type, argument)                                 \
    [[maybe_unused]] const int LOTUS_DETAIL_CONCAT(lotus_scope_, __LINE__) = \
        true ? 0 : (static_cast<void>(argument), 0)
  #define LOTUS_DETAIL_SITE(name) (name)
  #define LOTUS_DETAIL_EVENT(function, argument) \
    static_cast<void>(true ? 0 : (static_cast<void>(argument), 0))
  #define LOTUS_DETAIL_COLLECTOR(function) static_cast<void>(0)
  #define LOTUS_DETAIL_REGION(variable, ...) \
    for (bool variable = true; variable;     \
         variable = true ? false             \
                         : (static_cast<void>(::lotus::fenced_map_region{__VA_ARGS__}), false))
#else
  #define LOTUS_DETAIL_SCOPE(type, argument)                          \
    const ::lotus::type LOTUS_DETAIL_CONCAT(lotus_scope_, __LINE__) { \
      argument                                                        \
    }
  #define LOTUS_DETAIL_SITE(literal)                                            \
    []() noexcept -> ::lotus::detail::call_site& {                              \
      struct here {                                                             \
        static constexpr ::std::string_view name() noexcept { return literal; } \
      };                                                                        \
      return ::lotus::detail::call_site_of<here>::site;                         \
    }()
  #define LOTUS_DETAIL_EVENT(function, argument) ::lotus::function(argument)
  #define LOTUS_DETAIL_COLLECTOR(function) ::lotus::collector::function()
  #define LOTUS_DETAIL_REGION(variable, ...) \
    for (::lotus::fenced_map_region variable{__VA_ARGS__}; variable.next();)
#endif

/// Logs "S<name>" for the time from here to the end of the block. The name is a string literal.
#define LOTUS_SCOPE(name) LOTUS_DETAIL_SCOPE(scope, LOTUS_DETAIL_SITE(name))
/// The same with a name known only at run time: anything a std::string_view is made from.
#define LOTUS_SCOPE_DYNAMIC(name) LOTUS_DETAIL_SCOPE(scope, ::std::string_view{name})

/// Scope in a worker around all that makes batch `i`.
#define LOTUS_BATCH_PREPROCESSED(i) \
  LOTUS_DETAIL_SCOPE(batch_preprocessed, static_cast<::std::uint64_t>(i))
/// Scope in the consumer around its wait for batch `i`.
#define LOTUS_BATCH_WAIT(i) LOTUS_DETAIL_SCOPE(batch_wait, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` came out of order and is put aside.
#define LOTUS_BATCH_ARRIVED(i) LOTUS_DETAIL_EVENT(batch_arrived, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` is handed over.
#define LOTUS_BATCH_CONSUMED(i) LOTUS_DETAIL_EVENT(batch_consumed, static_cast<::std::uint64_t>(i))
/// In the consumer: the work for batch `i` is given to a worker.
#define LOTUS_BATCH_QUEUED(i) LOTUS_DETAIL_EVENT(batch_queued, static_cast<::std::uint64_t>(i))

/// The profiler that runs this program, if any, collects from here on; see lotus::collector.
#define LOTUS_RESUME() LOTUS_DETAIL_COLLECTOR(resume)
/// It stops; once for each LOTUS_RESUME().
#define LOTUS_PAUSE() LOTUS_DETAIL_COLLECTOR(pause)
/// It collects nothing more until the program ends.
#define LOTUS_DETACH() LOTUS_DETAIL_COLLECTOR(detach)

/// In a probe program: LOTUS_MAP_REGION("Crop", in, out) { out = crop(in); } Its block is one
/// operation. Under a collector it runs for warm-up (LOTUS_MAP_WARMUP passes, 4 by default), then
/// LOTUS_MAP_PASSES (1) passes that are collected, and logged like a scope; else exactly once.
/// LOTUS_MAP_OP picks the only region to collect. Behind the name stand the variables that the
/// block takes and gives, so that the compiler moves no work on them out of the block.
#define LOTUS_MAP_REGION(...) \
  LOTUS_DETAIL_REGION(LOTUS_DETAIL_CONCAT(lotus_region_, __LINE__), __VA_ARGS__)

#endif  // LOTUS_MACROS_HPP
