import { setTimeout as sleep } from 'node:timers/promises';
import { hearthGoal, multipleOfPeer } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { inParallel } from '../load/parallel.ts';
import { PollingMembers } from '../load/polling-members.ts';
import type { Load, Measurement, Scenario } from '../scenario.ts';
import { sampleText } from './sample-text.ts';

interface Setup {
  readonly room: string;
  readonly pollingMembers: PollingMembers;
  /** Members who may send, each on a second connection. `deliver` takes a member out of the list while it sends. */
  readonly senders: Account[];
}

const memberCount = 100;
/** Number of concurrent messages in the saturated load: so many that the server always has a message to deliver. */
const concurrentMessages = 4;
/** Number of members who can send at the same time. Reached only when the server falls behind the pace. */
const senderCount = 50;
const messagesPerSecond = 10;

/** Measures the deliveries of the messages that `work` sends. */
async function measure({ pollingMembers }: Setup, work: () => Promise<unknown>): Promise<Measurement> {
  pollingMembers.takeLatencies();
  const startedAt = performance.now();
  await work();
  const seconds = (performance.now() - startedAt) / 1000;
  const latencies = pollingMembers.takeLatencies();
  return { operations: latencies.length, seconds, latencies };
}

/** Sends a message and waits until all members have received it. */
async function deliver({ pollingMembers, senders, room }: Setup): Promise<void> {
  const sender = senders.pop();
  if (!sender) throw new Error('more concurrent messages than senders');
  await pollingMembers.deliver((text) => sender.send(room, text), sampleText);
  senders.push(sender);
}

/** Messages at a steady pace, whether or not the previous ones have arrived. */
const paced: Load<Setup> = {
  name: 'delivery-paced',
  title: `delivery to ${memberCount} long-polling members at ${messagesPerSecond} messages/s`,
  operation: 'deliveries',
  goals: [hearthGoal('ms (p95)', { atMost: 25 }, ({ p95 }) => p95)],
  run: (setup, seconds) =>
    measure(setup, () => {
      const startedAt = performance.now();
      return inParallel(Math.ceil(seconds * messagesPerSecond), senderCount, async (number) => {
        const due = startedAt + (number * 1000) / messagesPerSecond;
        await sleep(Math.max(0, due - performance.now()));
        await deliver(setup);
      });
    }),
};

/** Messages as fast as all members can receive them. */
const saturated: Load<Setup> = {
  name: 'delivery-saturated',
  title: `delivery to ${memberCount} long-polling members at saturation`,
  operation: 'deliveries',
  goals: [
    hearthGoal('deliveries/s', { atLeast: 30_000 }, ({ throughput }) => throughput),
    multipleOfPeer(100),
  ],
  run: (setup, seconds) =>
    measure(setup, () => {
      const deadline = performance.now() + seconds * 1000;
      return inParallel(concurrentMessages, concurrentMessages, async () => {
        while (performance.now() < deadline) await deliver(setup);
      });
    }),
};

/** Messages in a room whose members all wait for them with long polls. */
export const delivery: Scenario<Setup> = {
  name: 'delivery',
  targets: ['hearth', 'peer'],
  async prepare(target) {
    const members = await registerAccounts(target, memberCount);
    const [owner, ...others] = members;
    const room = await owner!.createPublicRoom();
    await inParallel(others.length, 4, (index) => others[index]!.join(room));
    const pollingMembers = new PollingMembers(members);
    await pollingMembers.listen();
    const senders = members.slice(0, senderCount).map((member) => member.onSecondConnection());
    return { room, pollingMembers, senders };
  },
  loads: [paced, saturated],
  dispose({ pollingMembers, senders }) {
    pollingMembers.close();
    for (const { connection } of senders) connection.close();
  },
};
