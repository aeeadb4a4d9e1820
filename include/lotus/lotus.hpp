// Includes the whole public API of lotus, which records where a data pipeline spends its time.
//
// The library is header-only by default. In files that define LOTUS_COMPILED, this header contains
// no engine (the code that records); the engine is compiled in the one file that also defines
// LOTUS_IMPLEMENTATION, as in the CMake target lotus::lotus. A program may mix both kinds of files.
#ifndef LOTUS_LOTUS_HPP
#define LOTUS_LOTUS_HPP

#include "lotus/async_scope.hpp"
#include "lotus/batch.hpp"
#include "lotus/compose.hpp"
#include "lotus/config.hpp"
#include "lotus/consume.hpp"
#include "lotus/deprecated.hpp"
#include "lotus/macros.hpp"
#include "lotus/map.hpp"
#include "lotus/options.hpp"
#include "lotus/record_span.hpp"
#include "lotus/scope.hpp"
#include "lotus/scope_arguments.hpp"
#include "lotus/session.hpp"
#include "lotus/stage.hpp"
#include "lotus/version.hpp"

#endif  // LOTUS_LOTUS_HPP

// The engine is included outside the include guard, because another header may have included this
// file before LOTUS_IMPLEMENTATION was defined.
#if !defined(LOTUS_COMPILED) || defined(LOTUS_IMPLEMENTATION) || LOTUS_DETAIL_DISABLED
#include "lotus/engine/engine.hpp"
#endif
