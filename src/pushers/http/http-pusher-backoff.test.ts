import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { pusherMigrations } from '../migrations.ts';
import type { PushOutcomeName } from '../push-metrics.ts';
import { addPending, readPending } from '../queue/pending-pushes.ts';
import { readPushers, writePusher } from '../store.ts';
import type { PusherTables } from '../tables.ts';
import { HttpPusher, type HttpPusherDeps } from './http-pusher.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

forSelectedDatabases(import.meta.url, (open) => {
  /**
   * Opens a pusher whose gateway fails each request while `gateway.isDown`. No notification can be prepared while
   * `preparation.isBroken`, and never that of the event at the position `preparation.brokenEvent`.
   */
  const openPusher = async () => {
    const database = await open(pusherMigrations);
    const clock = manualClock();
    const owner = { userId: '@ann:test', deviceId: undefined, setAt: clock.now() };
    const settings = {
      kind: 'http',
      appId: 'app',
      pushkey: 'key',
      lang: 'en',
      data: {},
      enabled: true,
    } as const;
    const names = { appDisplayName: 'App', deviceDisplayName: 'Phone', profileTag: undefined };
    await database.transaction<PusherTables, void>((writer) =>
      writePusher(writer, owner, { ...settings, ...names }),
    );
    const reader = database.reader<PusherTables>();
    const pusherId = (await readPushers(reader, [owner.userId]))[0]!.id;
    const gateway = { isDown: true, attempts: 0, received: [] as number[] };
    const preparation = { isBroken: false, brokenEvent: undefined as number | undefined, attempts: 0 };
    const outcomes = new Map<PushOutcomeName, number>();
    const pusher = new HttpPusher(
      pusherId,
      {
        database,
        clock,
        log: silentLogger,
        gateways: {
          send: async (_: unknown, position: number) => {
            gateway.attempts += 1;
            if (gateway.isDown) throw new Error('The gateway is down');
            gateway.received.push(position);
            return 'accepted';
          },
        },
        notifications: {
          event: async ({ stream }: { stream: number }) => {
            preparation.attempts += 1;
            if (preparation.isBroken || stream === preparation.brokenEvent)
              throw new Error('The event cannot be read');
            return {};
          },
          ofEvent: async (_: unknown, { stream }: { stream: number }) => stream,
        },
        unread: { of: async () => 1 },
        metrics: {
          countOutcome: (outcome: PushOutcomeName, count = 1) =>
            outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count),
          countRepeat: () => undefined,
        },
        stopping: new AbortController().signal,
      } as unknown as HttpPusherDeps,
      { onIdle: () => undefined },
    );
    const addPendingEvent = async (stream: number) => {
      const times = { addedAt: clock.now(), dueAt: clock.now() };
      const push = { ...times, pusherId, stream, nid: stream, userId: owner.userId, roomId: '!room:test' };
      await database.transaction<PusherTables, void>((writer) => addPending(writer, [push]));
      pusher.sendPending();
      await pusher.paused();
    };
    const passTime = async (time: number) => {
      for (let passed = 0; passed < time; passed += minute) {
        clock.advance(minute);
        await pusher.paused();
      }
    };
    const pendingStreams = async () => (await readPending(reader, pusherId, 100)).map(({ stream }) => stream);
    return { gateway, preparation, addPendingEvent, passTime, pendingStreams, outcomes };
  };

  describe('HttpPusher during an outage of its gateway', () => {
    it('retries about once an hour during an outage of three days, and sends all events in order afterwards', async () => {
      const { gateway, addPendingEvent, passTime, pendingStreams } = await openPusher();
      await addPendingEvent(1);
      await addPendingEvent(2);
      await passTime(3 * day);
      assert.ok(gateway.attempts > 60 && gateway.attempts < 90, `${gateway.attempts} attempts`);
      await addPendingEvent(3);
      gateway.isDown = false;
      await passTime(hour);
      assert.deepEqual([gateway.received, await pendingStreams()], [[1, 2, 3], []]);
    });

    it('drops the events that have waited for a week, counts them, and sends the others', async () => {
      const { gateway, addPendingEvent, passTime, outcomes } = await openPusher();
      await addPendingEvent(1);
      await passTime(4 * day);
      await addPendingEvent(2);
      await passTime(4 * day);
      assert.equal(outcomes.get('dropped'), 1);
      gateway.isDown = false;
      await passTime(hour);
      assert.deepEqual(gateway.received, [2]);
    });
  });

  describe('HttpPusher while its notifications cannot be prepared', () => {
    it('tries again with a backoff, and sends the pending events afterwards', async () => {
      const { gateway, preparation, addPendingEvent, passTime } = await openPusher();
      gateway.isDown = false;
      preparation.isBroken = true;
      await addPendingEvent(1);
      await passTime(9 * minute);
      assert.ok(preparation.attempts > 4 && preparation.attempts < 12, `${preparation.attempts} attempts`);
      preparation.isBroken = false;
      await passTime(10 * minute);
      assert.deepEqual(gateway.received, [1]);
    });

    it('drops an event whose notification cannot be prepared for ten minutes, counts it, and sends the later events', async () => {
      const { gateway, preparation, addPendingEvent, passTime, pendingStreams, outcomes } =
        await openPusher();
      gateway.isDown = false;
      preparation.brokenEvent = 1;
      await addPendingEvent(1);
      for (let stream = 2; stream < 20; stream++) await addPendingEvent(stream);
      assert.equal((await pendingStreams())[0], 1);
      await passTime(hour);
      assert.deepEqual([gateway.received.length, gateway.received[0], await pendingStreams()], [18, 2, []]);
      assert.equal(outcomes.get('dropped'), 1);
    });

    it('keeps an event that was prepared between two failures, however long its gateway was down', async () => {
      const { gateway, preparation, addPendingEvent, passTime, outcomes } = await openPusher();
      preparation.isBroken = true;
      await addPendingEvent(1);
      preparation.isBroken = false;
      await passTime(hour);
      assert.ok(gateway.attempts > 0);
      preparation.isBroken = true;
      for (const before = preparation.attempts; preparation.attempts === before; ) await passTime(minute);
      preparation.isBroken = false;
      gateway.isDown = false;
      await passTime(3 * hour);
      assert.deepEqual([gateway.received, outcomes.get('dropped') ?? 0], [[1], 0]);
    });
  });
});
