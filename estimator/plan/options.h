// The options of a plan, one line for each, in a header for each section of a plan. These lines
// define how plans are read and written, their schema, the flags of the command line with their
// help, the ranges, and which options change nothing in the run of a single rank
// (profile_match.cpp). The defaults are in the structs.
//
//     visit("tensor", parallelism.tensor, {"tensor parallel size", kDegree,
//     {{"--tensor-model-parallel-size,--tp"}}});
//
// A new option needs a member in its struct, a line in the header of its section, and the code for
// what it does. option_table.h lists all flags.
#pragma once

#include "estimator/plan/cluster_options.h"      // IWYU pragma: export
#include "estimator/plan/memory_options.h"       // IWYU pragma: export
#include "estimator/plan/model_options.h"        // IWYU pragma: export
#include "estimator/plan/parallelism_options.h"  // IWYU pragma: export
#include "estimator/plan/reliability_options.h"  // IWYU pragma: export
#include "estimator/plan/time_options.h"         // IWYU pragma: export
#include "estimator/plan/training_options.h"     // IWYU pragma: export
