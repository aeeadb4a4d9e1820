// The one place the version is written; CMake reads these three lines.
#ifndef LOTUS_VERSION_HPP
#define LOTUS_VERSION_HPP

#define LOTUS_VERSION_MAJOR 0
#define LOTUS_VERSION_MINOR 1
#define LOTUS_VERSION_PATCH 0

#endif  // LOTUS_VERSION_HPP
