#include "sim/rank_process/rank_process_main.h"

int main(int argc, char** argv) { sim::rank_process_main(argc, argv); }
