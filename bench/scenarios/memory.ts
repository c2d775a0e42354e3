import { setTimeout as sleep } from 'node:timers/promises';
import { hearthGoal } from '../goals.ts';
import { registerAccounts } from '../load/account.ts';
import { MixedLoad, poll } from '../load/mixed-load.ts';
import { inParallel } from '../load/parallel.ts';
import type { Scenario } from '../scenario.ts';
import type { Target } from '../target.ts';

const userCount = 100;

/** Number of users who send messages. */
const activeUsers = 8;

const roomCount = 20;
const mebibyte = 2 ** 20;

/** Milliseconds after the start until idle memory is measured. */
const idleAfterStart = 40_000;

/** Milliseconds after the load until idle memory is measured. */
const idleAfterLoad = 60_000;

/** Milliseconds between two samples of the memory under load. */
const sampleInterval = 500;

/** Duration of the load, in durations of a round: five minutes where a round takes four seconds. */
const durationFactor = 75;

/** Resident memory of all processes of the server: idle, during a mixed load with 100 syncing users, and after it. */
export const memory: Scenario<Target> = {
  name: 'memory',
  targets: ['hearth'],
  isLong: true,
  prepare: async (target) => target,
  loads: [
    {
      name: 'memory',
      title: `memory with ${userCount} syncing users, ${activeUsers} of them active`,
      operation: 'operations',
      runsOnce: true,
      goals: [
        hearthGoal('MiB when idle', { atMost: 120 }, ({ figures }) => figures['idle']),
        hearthGoal('MiB at most under load', { atMost: 400 }, ({ figures }) => figures['load']),
        hearthGoal('MiB one minute later', { atMost: 250 }, ({ figures }) => figures['after']),
      ],
      async run(target, seconds) {
        const resident = () => (target.usage()?.residentBytes ?? Number.NaN) / mebibyte;
        await sleep(idleAfterStart);
        const idle = resident();
        const users = await registerAccounts(target, userCount);
        const rooms = await inParallel(roomCount, 4, (index) => users[index]!.createPublicRoom());
        await inParallel(userCount, 4, async (index) => {
          // The active users are in all rooms, each other user in five rooms.
          const joined =
            index < activeUsers
              ? rooms
              : [0, 1, 2, 3, 4].map((step) => rooms[(index + 4 * step) % roomCount]!);
          for (const room of joined) await users[index]!.join(room);
        });
        let isOpen = true;
        const polls = users.map((user) =>
          poll(user, () => isOpen).catch((error) => isOpen && Promise.reject(error)),
        );
        let load = 0;
        const sampling = setInterval(() => {
          load = Math.max(load, resident());
        }, sampleInterval);
        const startedAt = performance.now();
        const mixed = new MixedLoad(target.url, rooms);
        const active = users.slice(0, activeUsers).map((user) => user.onSecondConnection());
        await Promise.race([
          mixed.run(active, startedAt + seconds * durationFactor * 1000),
          Promise.all(polls),
        ]);
        const duration = (performance.now() - startedAt) / 1000;
        clearInterval(sampling);
        await sleep(idleAfterLoad);
        const after = resident();
        isOpen = false;
        for (const { connection } of [...users, ...active]) connection.close();
        await Promise.all(polls);
        return {
          operations: mixed.operations,
          seconds: duration,
          latencies: [],
          figures: { idle, load, after },
        };
      },
    },
  ],
  dispose() {},
};
