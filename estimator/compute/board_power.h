// The power of a GPU's board. A board keeps to its limit by lowering the clock, so that products
// and attention run below the speed that they reach alone for a short time. How far below is not a
// property of a kernel: it follows from the energy of everything that runs in a step.
//
// The energy of a kernel that runs at the share s of its full speed is s^energy_exponent of that at
// full speed (lower voltage). Kernels that wait for memory keep their speed, but need less energy
// too. Measured: data/power.json.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "estimator/hardware/hardware.h"

namespace estimator {

struct ProductEnergy {
  std::string dtype;  ///< of the operands, as PyTorch names it; "Float8" is all of these; "TF32"
  double joules_per_teraflop = 0;
};

/// What a GPU's work needs at full speed, beyond static_watts.
struct BoardPower {
  double limit_watts = 0;
  double static_watts = 0;  ///< at any time, whatever runs
  double energy_exponent = 0;
  std::vector<ProductEnergy> products;
  double attention_watts = 0;  ///< of fused attention at any rate, and
  double attention_joules_per_teraflop = 0;
  double memory_watts = 0;       ///< of a kernel that waits for memory
  double long_wait_seconds = 0;  ///< the board saves no power for later in a wait of so long
  std::string source;

  /// The energy in joules of a product; that of bf16 where the type is not known.
  double product_joules(const std::string& dtype, double flops) const;
  double attention_joules(double flops, double seconds) const;
  double memory_joules(double seconds) const { return memory_watts * seconds; }

  /// The energy of a kernel at the share `speed` of full speed, over that at full speed.
  double energy_share(double speed) const;

  /// Mean power in watts of a step of `seconds` whose kernels need `joules` at full speed, and ran
  /// at the share `speed` of it.
  double watts(double joules, double seconds, double speed) const;
};

/// Null for a GPU whose power nobody measured.
const BoardPower* board_power(const Gpu& gpu);

/// From how many seconds on a wait is none of StepEnergy::seconds, if there is a `board`.
inline double long_wait_of(const BoardPower* board) {
  return board == nullptr ? 0 : board->long_wait_seconds;
}

/// A step on one GPU, as it was played at some speed.
struct StepEnergy {
  double joules = 0;              ///< at the rates, without static_watts
  double seconds = 0;             ///< of the step, without long waits
  double arithmetic_seconds = 0;  ///< of these: products and attention, which the clock slows
};

/// The share of the rates, in (0, 1], at which the board keeps its limit, if the step was played
/// at the share `played` and its other seconds stay as they are.
double speed_within_limit(const BoardPower& board, const StepEnergy& step, double played);

/// What a step needs of a board.
struct BoardUse {
  double watts = 0;
  double limit_watts = 0;  ///< 0: nobody measured this GPU's power
  double speed = 1;        ///< of products and attention, as a share of the rates
};
template <class Visitor>
void visit_fields(Visitor& visit, BoardUse& use) {
  visit("watts", use.watts, "mean of the step, without waits of 0.1 s and more");
  visit("limit_watts", use.limit_watts, "of the board; 0: this GPU's power is not known");
  visit("speed", use.speed, "of products and attention, as a share of the rates");
}

/// Slows the boards of a step that would need more than their limit, until none does. `step` was
/// played at these rates, and has
///   StepEnergy energy_of(std::size_t board)           as it was played last
///   void slow_down(std::size_t board, double speed)   from now on
///   void play()                                       once more
template <class Step>
std::vector<BoardUse> keep_power_limit(const BoardPower& board, std::size_t boards, Step& step) {
  constexpr int kRounds = 5;
  constexpr double kExact = 0.002;
  std::vector<BoardUse> uses(boards);
  for (int round = 0; round < kRounds; ++round) {
    bool is_kept = true;
    for (std::size_t i = 0; i < boards; ++i) {
      const StepEnergy energy = step.energy_of(i);
      if (energy.seconds <= 0) continue;
      uses[i].limit_watts = board.limit_watts;
      uses[i].watts = board.watts(energy.joules, energy.seconds, uses[i].speed);
      const double speed = speed_within_limit(board, energy, uses[i].speed);
      if (std::abs(speed - uses[i].speed) < kExact) continue;
      is_kept = false;
      uses[i].speed = speed;
      step.slow_down(i, speed);
    }
    if (is_kept) break;
    step.play();
  }
  return uses;
}

}  // namespace estimator
