import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { Appservice } from '../../appservice-registry/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import { UserInterest } from '../interest/user-interest.ts';
import { appserviceMigrations } from '../migrations.ts';
import { deleteOutboxUpTo, readOutbox } from '../store.ts';
import type { AppserviceTables } from '../tables.ts';
import type { Fact } from './fact.ts';
import { FanOut, type FanOutDeps } from './fan-out.ts';

const service = new Appservice(
  {
    id: 'watcher',
    url: 'http://127.0.0.1:1',
    senderLocalpart: 'watcher',
    users: [{ regex: '@watched_.*', exclusive: false }],
    aliases: [],
    rooms: [],
    protocols: [],
  } as never,
  'test',
);

const event = (position: number, sender: string, stateKey?: string): Fact =>
  ({
    kind: 'event',
    position,
    stored: {
      nid: position,
      outOfBand: false,
      event: {
        roomId: '!room',
        sender,
        type: stateKey === undefined ? 'm.room.message' : 'm.room.member',
        stateKey,
      },
    },
    memberships: [],
  }) as never;

forSelectedDatabases(import.meta.url, (open) => {
  describe('FanOut', () => {
    const openFanOut = async (facts: readonly Fact[], overrides: Partial<FanOutDeps> = {}) => {
      const database = await open(appserviceMigrations);
      const wokenServices: string[] = [];
      const deps = {
        database,
        services: [service],
        users: new UserInterest([service], 'test', plainCaches(manualClock())),
        rooms: { servicesOf: async () => [], change: () => undefined, isCached: () => false },
        buffer: {
          take: (after: number, upTo: number) =>
            facts.filter((fact) => fact.position > after && fact.position <= upTo),
          untakenFacts: [],
        },
        onMember: () => undefined,
        onEntries: (services: Iterable<Appservice>) =>
          wokenServices.push(...Array.from(services, ({ id }) => id)),
        ...overrides,
      };
      const positions = async () =>
        (await readOutbox(database.reader<AppserviceTables>(), 'watcher', 1_000)).map(
          ({ position }) => position,
        );
      return {
        database,
        fanOut: (databaseOfFanOut = database) => new FanOut({ ...deps, database: databaseOfFanOut } as never),
        wokenServices,
        positions,
      };
    };

    it('sends a service the events by and about users of other servers in its namespaces', async () => {
      const { fanOut, positions } = await openFanOut([
        event(1, '@watched_a:elsewhere'),
        event(2, '@other:elsewhere', '@watched_b:elsewhere'),
        event(3, '@other:elsewhere'),
      ]);
      await fanOut().follow(0, 3);
      assert.deepEqual(await positions(), [1, 2]);
    });

    it('sends a service the events until its user leaves, even when the leave is in a later page of stored events', async () => {
      const user = '@watched_a:test';
      const leaveAt = 550;
      const stored = Array.from({ length: 600 }, (_, index) => ({
        nid: index + 1,
        stream: index + 1,
        event: {
          roomId: '!room',
          sender: '@other:elsewhere',
          content: {},
          ...(index + 1 === leaveAt
            ? { type: 'm.room.member', stateKey: user, content: { membership: 'leave' } }
            : { type: 'm.room.message' }),
        },
      }));
      const between = async (after: number, upTo: number, limit: number) =>
        stored.filter(({ stream }) => stream > after && stream <= upTo).slice(0, limit);
      const isJoined = () => runningFanOut.membersBeforeUnhandledFacts('!room').get(user) === true;
      const { fanOut, positions } = await openFanOut([], {
        buffer: { take: () => undefined, untakenFacts: [] } as never,
        engine: { events: { between, outOfBandBetween: async () => [] } } as never,
        queues: { addressesBetween: async () => [] } as never,
        devices: { changedSince: async () => [] } as never,
        rooms: {
          servicesOf: async () => (isJoined() ? [service] : []),
          change: () => undefined,
          isCached: () => false,
        } as never,
      });
      const runningFanOut = fanOut();
      await runningFanOut.follow(0, 600);
      assert.deepEqual(
        await positions(),
        Array.from({ length: leaveAt }, (_, index) => index + 1),
      );
    });

    it('finds the services for a changed device list in cached rooms first, and loads no other room when these suffice', async () => {
      const receiver = {
        ...service,
        registration: { url: 'http://127.0.0.1:1', receivesDeviceChanges: true },
      };
      const lookups: string[] = [];
      const rooms = {
        servicesOf: async (roomId: string) => {
          lookups.push(roomId);
          return roomId === '!bridged' ? [receiver] : [];
        },
        change: () => undefined,
        isCached: (roomId: string) => roomId !== '!first',
      };
      const joined = new Map(
        ['!first', '!other', '!bridged', '!last'].map((id) => [id, { membership: 'join' }]),
      );
      const fact: Fact = { kind: 'device list', position: 1, userId: '@ann:elsewhere' };
      const { fanOut, positions } = await openFanOut([fact], {
        services: [receiver as never],
        rooms: rooms as never,
        userRooms: { of: async () => joined as never },
      });
      await fanOut().follow(0, 1);
      assert.deepEqual([lookups, await positions()], [['!other', '!bridged'], [1]]);
    });

    it('stores one device list entry for an encrypted room in which more than 50 users join at once', async () => {
      const receiver = { ...service, registration: { url: '', receivesDeviceChanges: true } };
      const stepOf = (index: number) => ({ userId: `@m${index}:far`, wasJoined: false, isJoined: true });
      const memberships = Array.from({ length: 60 }, (_, index) => stepOf(index));
      const facts: Fact[] = [
        { kind: 'memberships', position: 1, roomId: '!room', memberships },
        { kind: 'memberships', position: 2, roomId: '!room', memberships: memberships.slice(0, 2) },
      ];
      const { database, fanOut } = await openFanOut(facts, {
        services: [receiver as never],
        rooms: { servicesOf: async () => [receiver], change: () => undefined } as never,
        heads: { get: async () => ({ entry: () => ({}) }) } as never,
      });
      await fanOut().follow(0, 2);
      const rows = await readOutbox(database.reader<AppserviceTables>(), 'watcher', 100);
      assert.deepEqual(rows.map(({ position, kind, subject }) => [position, kind, subject]).sort(), [
        [1, 'device list', '!room'],
        [2, 'device list', '@m0:far'],
        [2, 'device list', '@m1:far'],
      ]);
    });

    it('writes no entry twice when a transaction is committed and its confirmation is lost', async () => {
      const { database, fanOut, wokenServices, positions } = await openFanOut([event(1, '@watched_a:test')]);
      let isLost = true;
      const databaseThatLosesConfirmations = {
        reader: () => database.reader(),
        transaction: async (work: never) => {
          await database.transaction(work);
          if (isLost) throw new Error('connection lost');
        },
      } as unknown as Database;
      const outbox = fanOut(databaseThatLosesConfirmations);
      await assert.rejects(outbox.follow(0, 1), /connection lost/);
      assert.deepEqual([await positions(), wokenServices], [[1], ['watcher']]);
      // The service receives the event before the follower tries again.
      await database.transaction<AppserviceTables, void>((writer) => deleteOutboxUpTo(writer, 'watcher', 1));
      isLost = false;
      await outbox.follow(0, 1);
      assert.deepEqual(await positions(), []);
    });
  });
});
