// The sizes of what shared objects of one program pass to each other, and of the public classes,
// for this LOTUS_ABI. If one of them changes, increase LOTUS_ABI in version.hpp and write the new
// sizes here.
#include <cstddef>

#include "lotus/lotus.hpp"

static_assert(LOTUS_ABI == 17, "write the sizes of the new layout below");
static_assert(sizeof(lotus::options) == 136 && offsetof(lotus::options, keep_bytes) == 80 &&
              offsetof(lotus::options, on_message) == 128);
static_assert(sizeof(lotus::schedule) == 40 && offsetof(lotus::schedule, on_trace_ready) == 24);
static_assert(sizeof(lotus::detail::record) == 24 && sizeof(lotus::detail::record_tag) == 8);
static_assert(sizeof(lotus::detail::services) == 224 && sizeof(lotus::detail::module_state) == 24);
static_assert(sizeof(lotus::detail::thread_ring) == 128);
static_assert(sizeof(lotus::scope) == 24 && sizeof(lotus::range) == 24);
static_assert(sizeof(lotus::scope_with_arguments) == 32 && sizeof(lotus::aggregated_scope) == 24);
static_assert(sizeof(lotus::stage) == 32 && sizeof(lotus::async_scope) == 16);
static_assert(sizeof(lotus::batch_preprocessed) == 16 && sizeof(lotus::batch_wait) == 16);
static_assert(sizeof(lotus::loader_scope) == 4 && sizeof(lotus::map_region) == 320);
