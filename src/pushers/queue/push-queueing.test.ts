import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { Database } from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { pusherMigrations } from '../migrations.ts';
import type { Pusher } from '../pusher.ts';
import { Pushers } from '../pushers.ts';
import type { PusherTables } from '../tables.ts';
import { addPending, deletePending, readPending, trimPending } from './pending-pushes.ts';
import { PushQueueing } from './push-queueing.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('PushQueueing', () => {
    const openFixture = async (wrap: (database: Database) => Database = (database) => database) => {
      const fixture = await RoomsUnderTest.open(open, pusherMigrations);
      const { database, clock } = fixture;
      const pushers = new Pushers({ database, clock, addresses: undefined });
      await pushers.start();
      const settings = {
        kind: 'http' as const,
        appId: 'app',
        pushkey: 'key',
        appDisplayName: 'App',
        deviceDisplayName: 'Phone',
        profileTag: undefined,
        lang: 'en',
        data: {},
        enabled: true,
      };
      await pushers.set({ userId: bob, deviceId: 'PHONE' }, settings, false);
      const roomId = await fixture.room(alice, bob);
      const pushersWithEvents: Pusher[] = [];
      const state = { notifiedUserCount: 1 };
      const newQueue = () =>
        new PushQueueing({
          ...fixture,
          database: wrap(database),
          engine: fixture.engine,
          streams: fixture.streams,
          clock,
          log: silentLogger,
          randomness: systemRandomness,
          pushers,
          // Each event notifies this many users, only one of whom has a pusher.
          notified: {
            of: async () =>
              new Map(
                Array.from({ length: state.notifiedUserCount }, (_, index) => [
                  index === 0 ? bob : `@u${index}:test`,
                  {},
                ]),
              ),
          } as never,
          jitter: 0,
          scheduleMails: undefined,
          onPushAdded: (pusher) => pushersWithEvents.push(pusher),
        });
      const [pusher] = await pushers.list(bob);
      const pending = async () =>
        (await readPending(database.reader<PusherTables>(), pusher!.id, 100)).map(({ stream }) => stream);
      return { fixture, roomId, newQueue, pushersWithEvents, pusher: pusher!, pending, state };
    };

    it('stores the pending events of large rooms in several transactions, each event once', async () => {
      let transactions = 0;
      const { fixture, roomId, newQueue, pending, state } = await openFixture((database) =>
        withTransaction(database, (work) => {
          transactions += 1;
          return database.transaction(work);
        }),
      );
      // From its first start on, a queue follows all events.
      const firstQueue = newQueue();
      await firstQueue.start();
      await firstQueue.stop();
      state.notifiedUserCount = 2_000;
      transactions = 0;
      for (let count = 0; count < 6; count++) await fixture.say(alice, roomId, `Message ${count}`);
      const queue = newQueue();
      await queue.start();
      await queue.caughtUp();
      assert.equal((await pending()).length, 6);
      assert.ok(transactions >= 2, `${transactions} transactions`);
      await queue.stop();
    });

    it('makes no event pending twice when a transaction is committed and its confirmation is lost', async () => {
      let losesNextConfirmation = false;
      const { fixture, roomId, newQueue, pushersWithEvents, pusher, pending } = await openFixture(
        (database) =>
          withTransaction(database, async (work) => {
            const result = await database.transaction(work);
            if (losesNextConfirmation) {
              losesNextConfirmation = false;
              // The pusher sends the event before the follower tries again.
              await database.transaction<PusherTables, number>((writer) =>
                deletePending(writer, pusher.id, Number.MAX_SAFE_INTEGER),
              );
              throw new Error('connection lost');
            }
            return result;
          }),
      );
      const queue = newQueue();
      await queue.start();
      await queue.caughtUp();
      losesNextConfirmation = true;
      const before = pushersWithEvents.length;
      await fixture.say(alice, roomId, 'Hello');
      let isDone = false;
      const caughtUp = queue.caughtUp().then(() => {
        isDone = true;
      });
      // The follower tries again after a pause.
      await eventually('the later attempt', () => {
        if (!isDone) fixture.clock.advance(1_000);
        return isDone;
      });
      await caughtUp;
      assert.equal(losesNextConfirmation, false);
      assert.deepEqual(await pending(), []);
      assert.equal(pushersWithEvents.length, before + 1);
      await queue.stop();
    });
  });

  describe('trimPending', () => {
    it('deletes the events of one pusher that became pending before a time, and keeps only the newest of its other events', async () => {
      const database = await open(pusherMigrations);
      const bobPusherId = 1;
      const carlPusherId = 2;
      const push = (pusherId: number, stream: number) => ({
        pusherId,
        stream,
        nid: stream,
        addedAt: stream * 10,
        dueAt: 0,
        userId: bob,
        roomId: '!room:test',
      });
      const trim = (max: number, before: number) =>
        database.transaction<PusherTables, number>((writer) =>
          trimPending(writer, bobPusherId, { max, before }),
        );
      const streams = async (pusherId: number) =>
        (await readPending(database.reader<PusherTables>(), pusherId, 100)).map(({ stream }) => stream);
      await database.transaction<PusherTables, void>((writer) =>
        addPending(
          writer,
          [1, 2, 3, 4, 5].flatMap((stream) => [push(bobPusherId, stream), push(carlPusherId, stream)]),
        ),
      );
      assert.deepEqual([await trim(10, 30), await streams(bobPusherId)], [2, [3, 4, 5]]);
      assert.deepEqual([await trim(2, 30), await streams(bobPusherId)], [1, [4, 5]]);
      assert.deepEqual([await trim(2, 30), await streams(carlPusherId)], [0, [1, 2, 3, 4, 5]]);
    });
  });
});

/** Returns a proxy of the database whose method `transaction` is replaced. */
const withTransaction = (
  database: Database,
  transaction: (work: Parameters<Database['transaction']>[0]) => Promise<unknown>,
): Database =>
  new Proxy(database, {
    get(target, name) {
      if (name === 'transaction') return transaction;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
