import { setTimeout as sleep } from 'node:timers/promises';
import { ofHearth, timesThePeer } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { Audience } from '../load/audience.ts';
import { inParallel } from '../load/parallel.ts';
import type { Load, Measurement, Scenario } from '../scenario.ts';
import { messageText } from './message-text.ts';

interface Stage {
  readonly room: string;
  readonly audience: Audience;
  /** Members, on connections that do not wait; taken out while they send. */
  readonly senders: Account[];
}

const memberCount = 100;
/** Messages that are under way at the same time when there is no pace: enough that the server never waits. */
const window = 4;
/** For a pace that the server does not keep. */
const senderCount = 50;
const messagesPerSecond = 10;

async function measure({ audience }: Stage, work: () => Promise<unknown>): Promise<Measurement> {
  audience.takeLatencies();
  const startedAt = performance.now();
  await work();
  const seconds = (performance.now() - startedAt) / 1000;
  const latencies = audience.takeLatencies();
  return { operations: latencies.length, seconds, latencies };
}

async function deliver({ audience, senders, room }: Stage): Promise<void> {
  const sender = senders.pop();
  if (!sender) throw new Error('more messages under way than there are senders');
  await audience.deliver((text) => sender.send(room, text), messageText);
  senders.push(sender);
}

/** Messages at a steady pace, whether or not the ones before have arrived. */
const paced: Load<Stage> = {
  name: 'delivery-paced',
  title: `delivery to ${memberCount} long-polling members at ${messagesPerSecond} messages/s`,
  operation: 'deliveries',
  goals: [ofHearth('ms (p95)', { atMost: 25 }, ({ p95 }) => p95)],
  run: (stage, seconds) =>
    measure(stage, () => {
      const startedAt = performance.now();
      return inParallel(Math.ceil(seconds * messagesPerSecond), senderCount, async (number) => {
        const due = startedAt + (number * 1000) / messagesPerSecond;
        await sleep(Math.max(0, due - performance.now()));
        await deliver(stage);
      });
    }),
};

/** As many messages as all members can keep up with. */
const saturated: Load<Stage> = {
  name: 'delivery-saturated',
  title: `delivery to ${memberCount} long-polling members at saturation`,
  operation: 'deliveries',
  goals: [ofHearth('deliveries/s', { atLeast: 30_000 }, ({ throughput }) => throughput), timesThePeer(100)],
  run: (stage, seconds) =>
    measure(stage, () => {
      const until = performance.now() + seconds * 1000;
      return inParallel(window, window, async () => {
        while (performance.now() < until) await deliver(stage);
      });
    }),
};

export const delivery: Scenario<Stage> = {
  name: 'delivery',
  targets: ['hearth', 'peer'],
  async prepare(target) {
    const members = await registerAccounts(target, memberCount);
    const [owner, ...others] = members;
    const room = await owner!.createPublicRoom();
    await inParallel(others.length, 4, (index) => others[index]!.join(room));
    const audience = new Audience(members);
    await audience.listen();
    const senders = members.slice(0, senderCount).map((member) => member.twin());
    return { room, audience, senders };
  },
  loads: [paced, saturated],
  dispose({ audience, senders }) {
    audience.close();
    for (const { connection } of senders) connection.close();
  },
};
