#include "sim/exec/messages/peer_messages.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "estimator/base/errors.h"

namespace sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PeerMessagesTest : public testing::Test {
 protected:
  PeerMessagesTest() {
    std::string path = std::filesystem::temp_directory_path() / "peer-messages-XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~PeerMessagesTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

const MessageLine kFlags{
    .group = "nccl 0", .kind = "broadcast", .from = 0, .to = MessageLine::kEveryone};

TEST_F(PeerMessagesTest, TellThatAMessageIsNotWritten) {
  const PeerRanks ranks(folder_);
  PeerMessages root(folder_);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{.rlim_cur = 512, .rlim_max = limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);  // as a full disk
  const std::string bytes(4096, 'x');
  const auto say = [&] {
    root.say(root.next(kFlags), {.is_known = true, .size = 4096, .bytes = bytes});
  };
  EXPECT_THROW(say(), estimator::UserError);
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  std::filesystem::remove_all(folder_);
  EXPECT_NO_THROW(say()) << "the run has ended";
}

TEST_F(PeerMessagesTest, AreHeardByNumberOfTheCall) {
  const PeerRanks ranks(folder_);
  PeerMessages root(folder_);
  PeerMessages other(folder_);
  root.say(root.next(kFlags), {.is_known = true, .size = 3, .bytes = "a\nb"});
  root.say(root.next(kFlags), {.is_known = false, .size = 8});
  const PeerAnswer first = other.wait_for(other.next(kFlags), 5);
  ASSERT_TRUE(first.message);
  EXPECT_TRUE(first.message->is_known);
  EXPECT_EQ(first.message->bytes, "a\nb");
  const PeerAnswer second = other.wait_for(other.next(kFlags), 5);
  ASSERT_TRUE(second.message);
  EXPECT_FALSE(second.message->is_known);
  EXPECT_EQ(second.message->size, 8);
}

TEST_F(PeerMessagesTest, AreWaitedForUntilTheirRankHasEnded) {
  const PeerRanks ranks(folder_);
  PeerMessages other(folder_);
  PeerAnswer answer;
  std::thread waits([&] { answer = other.wait_for(other.next(kFlags), 5); });
  while (ranks.wanted().empty()) std::this_thread::yield();
  EXPECT_THAT(ranks.wanted(), ElementsAre(0));
  EXPECT_TRUE(ranks.is_waiting(5));
  ranks.started(0);
  EXPECT_THAT(ranks.wanted(), IsEmpty());
  ranks.ended(0);
  waits.join();
  EXPECT_FALSE(answer.message);
  EXPECT_EQ(answer.why_not, "rank 0 has ended and did not send it");
  EXPECT_FALSE(ranks.is_waiting(5));
}

TEST_F(PeerMessagesTest, OfRanksThatWaitForEachOtherNeverCome) {
  const PeerRanks ranks(folder_);
  PeerAnswer answers[2];
  std::thread threads[2];
  for (int64_t rank = 0; rank < 2; ++rank) {
    ranks.started(rank);
    threads[rank] = std::thread([&, rank] {
      PeerMessages own(folder_);
      const MessageLine line{.group = "gloo 0", .kind = "send", .from = 1 - rank, .to = rank};
      answers[rank] = own.wait_for(own.next(line), rank);
      ranks.ended(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const bool is_named = answers[0].why_not == "rank 0 waits for rank 1, which waits for rank 0" ||
                        answers[1].why_not == "rank 1 waits for rank 0, which waits for rank 1";
  EXPECT_TRUE(is_named) << answers[0].why_not << "; " << answers[1].why_not;
}

TEST_F(PeerMessagesTest, OfARankThatWasOnlyStartedForSomebodyAreNotAskedFor) {
  const PeerRanks ranks(folder_);
  ranks.asked(3);
  ranks.started(3);
  ranks.started(5);
  PeerMessages own(folder_);
  EXPECT_TRUE(own.is_asked(3));
  EXPECT_FALSE(own.is_asked(5));
  EXPECT_FALSE(PeerMessages("").is_asked(3));
}

TEST(PeerMessagesAlone, AreNotWaitedFor) {
  PeerMessages alone("");
  EXPECT_FALSE(alone.has_peers());
  EXPECT_EQ(alone.wait_for(alone.next(kFlags), 1).why_not, "rank 0 was not run");
}

}  // namespace
}  // namespace sim
