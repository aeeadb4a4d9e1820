// Lotus: tells a C++ data-preprocessing pipeline where its time goes.
#ifndef LOTUS_LOTUS_HPP
#define LOTUS_LOTUS_HPP

#include "lotus/batch.hpp"
#include "lotus/collector.hpp"
#include "lotus/compose.hpp"
#include "lotus/macros.hpp"
#include "lotus/map.hpp"
#include "lotus/options.hpp"
#include "lotus/scope.hpp"
#include "lotus/session.hpp"
#include "lotus/version.hpp"

#endif  // LOTUS_LOTUS_HPP
