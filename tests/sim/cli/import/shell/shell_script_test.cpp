#include "sim/cli/import/shell/shell_script.h"
#include "estimator/base/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/base/errors.h"

namespace sim {
namespace {

using testing::ElementsAre;

using Words = std::vector<std::string>;

Words texts(const std::vector<ShellWord>& words) {
  Words all;
  for (const ShellWord& word : words) all.push_back(word.text);
  return all;
}

ShellScript script(const std::string& text, const ScriptFinder& find = {}) {
  return read_shell_script(text, "train.sh", find);
}

/// The words of the last command.
Words last(const std::string& text, const ScriptFinder& find = {}) {
  const ShellScript read = script(text, find);
  return read.commands.empty() ? Words() : texts(read.commands.back().words);
}

TEST(ShellScript, ExpandsVariablesAndTheirDefaults) {
  EXPECT_EQ(last("TP=8\nrun --tp $TP --pp ${PP:-4} \"${TP}x\" '$TP'"),
            (Words{"run", "--tp", "8", "--pp", "4", "8x", "$TP"}));
  EXPECT_EQ(last("SIZE=${SIZE:-7b}\nrun ${SIZE^^} ${SIZE%b} ${NONE:+--x} ${SIZE:+--y}"),
            (Words{"run", "7B", "7", "--y"}));
  EXPECT_EQ(last("run $((2 * (3 + X)))"), (Words{"run", "$((2 * (3 + X)))"}));
  EXPECT_EQ(last("X=4; run $((2 * (3 + X))) $(($X*8))"), (Words{"run", "14", "32"}));
}

TEST(ShellScript, JoinsArraysAndContinuedLines) {
  EXPECT_EQ(
      last("ARGS=(\n  --tp 8  # tensor\n  --bf16\n)\nARGS+=(--sp)\nrun ${ARGS[@]} \\\n  --end"),
      (Words{"run", "--tp", "8", "--bf16", "--sp", "--end"}));
  EXPECT_EQ(last("A=(a 'b c'); B=(\"${A[@]}\" d)\nrun \"${B[@]}\" ${#B[@]}"),
            (Words{"run", "a", "b c", "d", "3"}));
  EXPECT_EQ(last("OPTIONS=\" \\\n --tp 2 \\\n --pp 4\"\nrun $OPTIONS ${MORE[@]}"),
            (Words{"run", "--tp", "2", "--pp", "4"}));
}

TEST(ShellScript, LeavesWhatOnlyTheShellKnows) {
  const ShellScript read = script("run $1 $(nproc) ${HOME}/data ${X##*/}");
  EXPECT_EQ(texts(read.commands[0].words),
            (Words{"run", "$1", "$(nproc)", "${HOME}/data", "${X##*/}"}));
  EXPECT_FALSE(read.commands[0].words[0].is_unknown);
  EXPECT_TRUE(read.commands[0].words[1].is_unknown);
  EXPECT_EQ(read.commands[0].words[3].line, 1);
}

TEST(ShellScript, DoesNotDecideWhatDependsOnArguments) {
  const auto flag = [](const std::string& arguments) {
    ShellStart start;
    if (!arguments.empty()) start.arguments = Words{arguments};
    const ShellScript read = read_shell_script(
        "P=$1\nif [ $P = fp16 ]; then F=--fp16; else F=--bf16; fi\nrun $F", "train.sh", {}, start);
    return read.commands.front().words.back();
  };
  EXPECT_EQ(flag("fp16").text, "--fp16");
  EXPECT_EQ(flag("x").text, "--bf16");
  EXPECT_TRUE(flag("").is_open);
  EXPECT_TRUE(flag("").holds_arguments);
  const ShellScript guarded = script("if [ -z \"$1\" ]; then exit 1; fi\nrun ${12} ${1:-7b}");
  ASSERT_EQ(guarded.commands.size(), 1u);
  EXPECT_EQ(texts(guarded.commands[0].words), (Words{"run", "${12}", "7b"}));
}

TEST(ShellScript, TellsWhichOpenWordsMayBeArguments) {
  const auto word = [](const std::string& text) {
    return script(text + "\nrun $A").commands.front().words.back();
  };
  EXPECT_TRUE(word("A='--tp 4'; [ -f /big ] && A='--tp 8'").holds_arguments);
  EXPECT_TRUE(word("[ -f /big ] && A='--tp 8'").holds_arguments);
  EXPECT_TRUE(word("B=--x; [ -f /big ] && B=; A=$B").holds_arguments);
  EXPECT_FALSE(word("A=4; [ -f /big ] && A=-8").holds_arguments);
  EXPECT_TRUE(word("A=4; [ -f /big ] && A=8").is_open);
  EXPECT_FALSE(word("A=4; [ -f /big ] && A=8; A=$A/x").is_open);
}

TEST(ShellScript, KeepsWhatAShellAloneKnowsInOneWord) {
  EXPECT_EQ(last("A=\"--mbs $(wc -l < a b)\"; run $A"), (Words{"run", "--mbs", "$(wc -l < a b)"}));
}

TEST(ShellScript, TakesPlaceholdersForWords) {
  const ShellScript read = script(
      "A=<Specify path>/vocab.json\nrun --dir <TENSORBOARD DIRECTORY> \\\n --fp16 $A 2>&1 >x");
  EXPECT_EQ(
      texts(read.commands[0].words),
      (Words{"run", "--dir", "<TENSORBOARD DIRECTORY>", "--fp16", "<Specify path>/vocab.json"}));
  EXPECT_TRUE(read.commands[0].words[2].is_unknown);
  EXPECT_TRUE(read.commands[0].words[4].is_unknown);
  EXPECT_EQ(last("run <in.txt >out.txt --x <in>out"), (Words{"run", "--x"}));
  EXPECT_THROW(script("run --dir < \\\n --fp16"), estimator::UserError);
  EXPECT_EQ(last("run 2>&- --x >-"), (Words{"run", "--x"}));
}

// scontrol's list is as long as the job has machines, and that of another command is not known.
TEST(ShellScript, CountsTheHostsOfAJob) {
  const auto words = [](const std::string& text) {
    ShellStart start{.environment = {{"SLURM_NNODES", "3"}}};
    return texts(read_shell_script(text, "train.sh", {}, start).commands.front().words);
  };
  const std::string show = "scontrol show hostnames $SLURM_JOB_NODELIST";
  EXPECT_EQ(words("H=( $(" + show + ") ); run ${#H[@]}"), (Words{"run", "3"}));
  EXPECT_EQ(words("run $(" + show + " | wc -l)"), (Words{"run", "3"}));
  EXPECT_EQ(words("run $(" + show + " | head -n 1)").back(), "$(" + show + " | head -n 1)");
  EXPECT_EQ(words("H=( $(cat hosts) ); run ${#H[@]}").back(), "${#H[@]}");
}

TEST(ShellScript, TakesTheBranchThatAShellWould) {
  EXPECT_EQ(last("D=fp8\nif [[ \"$D\" == \"fp8\" ]]; then\n X=1\nelse\n X=2\nfi\nrun $X"),
            (Words{"run", "1"}));
  EXPECT_EQ(last("if [ -n \"${KEY}\" ]; then X=1; elif [ 3 -gt 2 ]; then X=2; fi; run $X"),
            (Words{"run", "2"}));
  EXPECT_EQ(last("S=8B\ncase $S in\n 800M) X=1 ;;\n 8B|9B) X=2;;\n *) X=3;;\nesac\nrun $X"),
            (Words{"run", "2"}));
  EXPECT_EQ(last("[ -z \"$A\" ] && X=1 || X=2\nrun $X"), (Words{"run", "1"}));
  EXPECT_EQ(last("for N in 4 8; do X=$N; done\nrun $X"), (Words{"run", "4"}));
  EXPECT_EQ(last("mkdir -p out || { echo no; exit 1; }\nrun"), (Words{"run"}));
  EXPECT_EQ(last("go() { run $1 $X; }\nX=2\ngo --tp"), (Words{"run", "--tp", "2"}));
  EXPECT_EQ(last("run a\nexit 0\nrun b"), (Words{"run", "a"}));
}

/// The words of `run $X` at the end of the script; "?" for a value that is not known.
std::string value(const std::string& text, const ScriptFinder& find = {}) {
  const ShellScript read = script(text + "\nrun $X", find);
  const ShellWord& word = read.commands.back().words.back();
  return word.is_unknown ? "?" : word.text;
}

// All values are those of bash 5.2.
TEST(ShellScript, FollowsTestsInDoubleBrackets) {
  EXPECT_EQ(value("M=7b;N=1;X=8; if [[ $M == 7b && $N == 1 ]]; then X=1; fi"), "1");
  EXPECT_EQ(value("M=7b;N=2;X=8; if [[ $M == 7b && ($N == 1 || -n $M) ]]; then X=1; fi"), "1");
  EXPECT_EQ(value("N=1;X=8; if [[ $N > 1 ]]; then X=1; fi"), "8");
  EXPECT_EQ(value("C=2;X=auto; if [[ -v C && \"$C\" != \"1\" ]]; then X=fused; fi"), "fused");
  EXPECT_EQ(value("X=auto; if [[ -v C && \"$C\" != \"1\" ]]; then X=fused; fi"), "auto");
  EXPECT_EQ(value("X=8; [[ 010 -eq 8 ]] && X=1"), "1");
  EXPECT_EQ(value("X=8; ! [[ a == [b-z] ]] &&\n X=1"), "1");
}

TEST(ShellScript, FollowsTestsInBrackets) {
  EXPECT_EQ(value("M=7b;N=1;X=8; if [ $M = 7b -a $N = 1 ]; then X=1; fi"), "1");
  EXPECT_EQ(value("M=7b;N=1;X=8; if [ $M = 8b -o $N = 1 ]; then X=1; fi"), "1");
  EXPECT_EQ(value("N=8;X=8; if [ ! \\( $N -gt 4 -o -n \"$M\" \\) ]; then X=1; fi"), "8");
  EXPECT_EQ(value("X=8; [ 010 -eq 10 ] && X=1"), "1");
}

TEST(ShellScript, FollowsSums) {
  EXPECT_EQ(value("N=4;X=8; if (( N > 1 && N % 2 == 0 )); then X=1; fi"), "1");
  EXPECT_EQ(value("X=8; ((X /= 4))"), "2");
  EXPECT_EQ(value("X=8; let X=X/4 'X += 1'"), "3");
  EXPECT_EQ(value("X=8; ((X > 9)) || ((X = 2, X++))"), "3");
  EXPECT_EQ(value("A=3; X=$((A > 2 ? 2 ** 3 : 1 << 4))"), "8");
  EXPECT_EQ(value("A=(1 2); X=$(( ${#A[@]} * ${N:-4} ))"), "8");
}

TEST(ShellScript, ReadsNumbersThatBeginWithZeroAsABase) {
  EXPECT_EQ(value("X=$((010))"), "8");
  EXPECT_EQ(value("A=010; X=$((A + 0x10))"), "24");
  EXPECT_EQ(value("X=$((08))"), "?");
}

TEST(ShellScript, DoesNotKnowWhatAnUndecidedBranchAssigns) {
  EXPECT_EQ(value("X=8; if [ -d /data ]; then X=2; fi"), "?");
  EXPECT_EQ(value("if grep -q a b; then X=2; else X=8; fi"), "?");
  EXPECT_EQ(value("X=8; [[ $A =~ ^a ]] && X=2"), "?");
  EXPECT_EQ(value("X=8; [[ -d /data ]] || X=2"), "?");
  EXPECT_EQ(value("S=$(size); case $S in 7b) X=1;; *) X=8;; esac"), "?");
  EXPECT_EQ(value("X=8; f() { X=2; }; if [ -d /data ]; then f; fi"), "?");
  EXPECT_EQ(value("X=8; if [ $? -ne 0 ]; then exit 1; fi"), "8");
  EXPECT_EQ(value("if [ -d /data ]; then A=2; fi; X=${A:-8}"), "?");
  EXPECT_EQ(value("if [ -d /data ]; then A=2; fi; X=1; [ $A = 2 ] && X=2"), "?");
  EXPECT_EQ(last("if [ -d /data ]; then X=1; else X=2; run $X; fi"), (Words{"run", "2"}));
  EXPECT_EQ(value("X=8; [ -f conf.sh ] && . conf.sh", [](const std::string&) { return "X=2"; }),
            "2");
}

TEST(ShellScript, DoesNotKnowWhatALoopAssigns) {
  EXPECT_EQ(value("X=8; while [ $X -gt 2 ]; do X=$((X / 2)); done"), "?");
  EXPECT_EQ(value("X=8; for ((i = 0; i < 2; i++)); do X=$((X / 2)); done"), "?");
  EXPECT_EQ(value("X=8; while [ $# -gt 0 ]; do X=$1; shift; done"), "8");
  EXPECT_EQ(value("X=8; while getopts t: name; do X=$OPTARG; done"), "8");
  EXPECT_EQ(value("X=8; read -r X"), "?");
}

TEST(ShellScript, KeepsVariablesOfSubshells) {
  EXPECT_EQ(value("X=8; ( X=2; exit 1 )"), "8");
  EXPECT_EQ(last("X=8; ( X=2; run $X )"), (Words{"run", "2"}));
}

TEST(ShellScript, GivesEachCallArgumentsOfItsOwn) {
  EXPECT_EQ(value("log() { echo $1; }; go() { log x; X=${1:-1}; }; go 8"), "8");
  EXPECT_EQ(value("start() { X=${2:-1}; }; go() { start $1; }; go 2 4"), "1");
  EXPECT_EQ(value("f() { X=$2; }; go() { f \"$@\"; }; go a 'b'"), "b");
  EXPECT_EQ(value("set -- 1 2; X=${1:-8}"), "1");
  EXPECT_EQ(value("f() { shift; X=$#$1; }; f 3 4"), "14");
  EXPECT_EQ(value("f() { X=$1; }; f $(size)"), "?");
}

TEST(ShellScript, KeepsLocalVariablesInTheirFunction) {
  EXPECT_EQ(value("X=8; f() { local X=1; }; f"), "8");
  EXPECT_EQ(value("X=8; f() { local X; X=1; g; }; g() { local X=$X; X=3; }; f"), "8");
  EXPECT_EQ(value("X=8; f() { local -r Y=1; X=$Y; }; f"), "1");
}

TEST(ShellScript, FollowsScriptsAndCommandsInText) {
  const auto find = [](const std::string& path) -> std::optional<std::string> {
    if (path == "/conf/args.sh") return "TP=2";
    if (path == "run.sh") return "run --tp $TP";
    return std::nullopt;
  };
  EXPECT_EQ(last("source \"$(dirname $0)/conf/args.sh\"\nrun $TP", find), (Words{"run", "2"}));
  EXPECT_EQ(last("TP=4\nsbatch run.sh\n", find), (Words{"sbatch", "run.sh"}));
  EXPECT_EQ(texts(script("TP=4\nsbatch run.sh\n", find).commands[0].words),
            (Words{"run", "--tp", "4"}));
  EXPECT_EQ(last("CMD=\"run --tp 2\"\nsrun -N 2 bash -c \"$CMD\""), (Words{"run", "--tp", "2"}));
  EXPECT_EQ(last("eval \"run --tp 2\""), (Words{"run", "--tp", "2"}));
}

TEST(ShellScript, ReadsHereDocumentsOfSlurmAlone) {
  const ShellScript read = script(
      "N=4\nsbatch <<EOF\n#SBATCH --nodes=$N  # all\nrun x\nEOF\ncat <<EOF\nrun y\nEOF\nrun z");
  EXPECT_THAT(texts(read.directives), ElementsAre("--nodes=4"));
  EXPECT_EQ(texts(read.commands[0].words), (Words{"run", "x"}));
  EXPECT_EQ(texts(read.commands.back().words), (Words{"run", "z"}));
}

TEST(ShellScript, BoundsWhatAScriptMayAskFor) {
  std::string doubling = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) doubling += "A=$A$A\n";
  EXPECT_THROW(script(doubling), estimator::UserError);
  EXPECT_THROW(script(std::string(1000, '{') + std::string(1000, '(')), estimator::UserError);
  const auto repeated = [](const char* piece) {
    std::string sum = "((";
    for (int i = 0; i < 100'000; ++i) sum += piece;
    return sum + "1))";
  };
  for (const char* piece : {"1?1:", "1?", "-", "X=", "1**", "!"}) script(repeated(piece));
  EXPECT_THROW(script(repeated("(")), estimator::UserError);  // subshells, as no sum is closed
  std::string test = "[[ ";
  for (int i = 0; i < 100'000; ++i) test += "! ( ";
  script(test + "x ]]");
  std::string calls = "f() { f; f; }\nf\n";
  script(calls);
  for (const char* text :
       {"", "'", "\"", "${", "$((", "A=(", "<<", "if", "case x in", "for", ")", "}"}) {
    script(text);
  }
}

TEST(Glob, HasStarsQuestionMarksAndSets) {
  EXPECT_TRUE(estimator::matches_glob("fp8-format", "fp8*"));
  EXPECT_TRUE(estimator::matches_glob("h100", "[ah]?0[0-9]"));
  EXPECT_FALSE(estimator::matches_glob("h10x", "[ah]?0[0-9]"));
  EXPECT_TRUE(estimator::matches_glob("node-b", "*-[!0-9]"));
  EXPECT_FALSE(estimator::matches_glob("node-7", "*-[!0-9]"));
  EXPECT_TRUE(estimator::matches_glob("a]", "a[]x]"));
  EXPECT_TRUE(estimator::matches_glob("[a", "[a"));
  EXPECT_FALSE(estimator::matches_glob("", "[a-z]"));
}

}  // namespace
}  // namespace sim
