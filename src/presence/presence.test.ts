import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../test/clients/eventually.ts';
import { forSelectedDatabases, type OpenDatabase } from '../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { compileFilter } from '../filters/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { RateLimiter } from '../kernel/rate-limits/index.ts';
import { presenceMigrations } from './migrations.ts';
import { Presence } from './presence.ts';
import { PresenceEvents } from './presence-events.ts';
import type { PresenceState } from './presence-status.ts';

interface Options {
  readonly enabled?: boolean | 'untracked';
  readonly includeOffline?: boolean;
  readonly limit?: { per_second: number; burst_count: number };
}

const unlimited = { per_second: 1e6, burst_count: 1e6 };

class PresenceUnderTest {
  readonly rooms: RoomsUnderTest;
  readonly presence: Presence;
  readonly events: PresenceEvents;
  readonly ignored = new Set<string>();

  constructor(rooms: RoomsUnderTest, { enabled = true, includeOffline = false, limit = unlimited }: Options) {
    const { engine, database, streams, clock } = rooms;
    const limiter = new RateLimiter(limit, clock);
    this.rooms = rooms;
    this.presence = new Presence({ engine, database, streams, clock, log: silentLogger, limiter }, enabled);
    this.events = new PresenceEvents(
      {
        presence: this.presence,
        engine,
        streams,
        clock,
        ignored: { of: async () => this.ignored },
      },
      includeOffline,
    );
  }

  static async open(open: OpenDatabase, options: Options = {}): Promise<PresenceUnderTest> {
    return new PresenceUnderTest(await RoomsUnderTest.open(open, presenceMigrations), options);
  }

  async restart(open: OpenDatabase, options: Options = {}): Promise<PresenceUnderTest> {
    await this.presence.stop();
    const again = new PresenceUnderTest(await this.rooms.restart(open), options);
    await again.presence.start();
    return again;
  }

  sync(userId: string, presence: PresenceState = 'online'): () => void {
    return this.presence.beginSync({ userId, deviceId: 'D' }, presence);
  }

  /** Advances the clock and waits until the changes are announced. */
  async pass(milliseconds: number): Promise<void> {
    this.rooms.clock.advance(milliseconds);
    await this.presence.announcements.idle();
  }

  /** Returns the presence events of a sync: user id to presence. */
  async presenceEvents(userId: string, after: number | undefined): Promise<Record<string, unknown>> {
    const filter = compileFilter({}).presence;
    const events = await this.events.events({ userId, after, upTo: this.now, filter });
    return Object.fromEntries(
      events.map(({ sender, content }) => [sender, (content as { presence: string }).presence]),
    );
  }

  get now(): number {
    return this.rooms.streams.current;
  }
}

const second = 1_000;
const minute = 60 * second;

forSelectedDatabases(import.meta.url, (open) => {
  describe('Presence and PresenceEvents', () => {
    it('sends the presence of a user to the user and to users who share a room', async () => {
      const under = await PresenceUnderTest.open(open);
      await under.rooms.room(alice, bob);
      await under.rooms.room(carol);
      const before = under.now;
      under.sync(alice);
      await under.pass(second);
      assert.deepEqual(await under.presenceEvents(bob, before), { [alice]: 'online' });
      assert.deepEqual(await under.presenceEvents(alice, before), { [alice]: 'online' });
      assert.deepEqual(await under.presenceEvents(carol, before), {});
      assert.deepEqual(await under.presenceEvents(bob, under.now), {});
      assert.deepEqual(await under.presenceEvents(bob, undefined), { [alice]: 'online' });
      assert.deepEqual(await under.presenceEvents(carol, undefined), {});
      await assert.rejects(under.presence.get(carol, alice), { errcode: 'M_FORBIDDEN' });
      const status = await under.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.currentlyActive], ['online', true]);
    });

    it('sends the presence of offline members once to a user who joins their room, and the presence of that user to them', async () => {
      const under = await PresenceUnderTest.open(open);
      const room = await under.rooms.room(alice, bob);
      const before = under.now;
      await under.rooms.join(carol, room);
      for (const viewer of [alice, bob]) {
        assert.deepEqual(await under.presenceEvents(viewer, before), { [carol]: 'offline' });
        assert.deepEqual(await under.presenceEvents(viewer, under.now), {});
      }
      assert.deepEqual(await under.presenceEvents(carol, before), { [alice]: 'offline', [bob]: 'offline' });
      assert.deepEqual(await under.presenceEvents(carol, under.now), {});
    });

    it('makes a user offline 30 seconds after the last sync', async () => {
      const under = await PresenceUnderTest.open(open);
      await under.rooms.room(alice, bob);
      const end = under.sync(alice);
      await under.pass(40 * second);
      end();
      const before = under.now;
      await under.pass(29 * second);
      assert.equal((await under.presence.get(bob, alice)).presence, 'online');
      await under.pass(second);
      await under.pass(30 * second);
      assert.deepEqual(await under.presenceEvents(bob, before), { [alice]: 'offline' });
      assert.equal(under.presence.presentUsers.size, 0);
      await under.presence.stop();
      const status = await under.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.lastActive > 0], ['offline', true]);
    });

    it('makes a syncing user unavailable without activity, and online again with a message', async () => {
      const under = await PresenceUnderTest.open(open);
      const roomId = await under.rooms.room(alice, bob);
      under.sync(alice);
      await under.pass(2 * minute);
      const before = under.now;
      await under.pass(4 * minute);
      assert.deepEqual(await under.presenceEvents(bob, before), { [alice]: 'unavailable' });
      const idle = under.now;
      await under.rooms.say(alice, roomId, 'I am back');
      await under.pass(minute / 2);
      assert.deepEqual(await under.presenceEvents(bob, idle), { [alice]: 'online' });
    });

    it('stores a presence that the user sets, with a status message that survives restarts', async () => {
      const under = await PresenceUnderTest.open(open);
      await under.rooms.room(alice, bob);
      const device = { userId: alice, deviceId: 'D' };
      under.presence.set(device, 'unavailable', 'Out for lunch');
      const status = await under.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.statusMsg], ['unavailable', 'Out for lunch']);
      const again = await under.restart(open);
      assert.deepEqual(await again.presenceEvents(bob, undefined), { [alice]: 'unavailable' });
      await again.pass(31 * second);
      assert.equal((await again.presence.get(bob, alice)).presence, 'offline');
      const third = await again.restart(open);
      assert.deepEqual(await third.presenceEvents(bob, undefined), {});
      assert.equal((await third.presence.get(bob, alice)).statusMsg, 'Out for lunch');
      third.sync(alice);
      const back = await eventually('the status message from before the restart', async () => {
        const known = await third.presence.get(bob, alice);
        return known.statusMsg !== undefined && known;
      });
      assert.deepEqual([back.presence, back.statusMsg], ['online', 'Out for lunch']);
      third.presence.set(device, 'online', undefined);
      assert.equal((await third.presence.get(bob, alice)).statusMsg, undefined);
      await third.presence.stop();
    });

    it('exchanges the presence of a joining user and of the members of the room', async () => {
      const under = await PresenceUnderTest.open(open);
      const roomId = await under.rooms.room(alice);
      under.sync(alice);
      under.sync(carol);
      await under.pass(second);
      const before = under.now;
      await under.rooms.join(carol, roomId);
      assert.deepEqual(await under.presenceEvents(carol, before), { [alice]: 'online', [carol]: 'online' });
      await under.pass(minute / 2);
      assert.deepEqual(await under.presenceEvents(alice, before), { [carol]: 'online' });
      const left = under.now;
      await under.rooms.leave(carol, roomId);
      under.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'secret');
      await under.pass(minute / 2);
      assert.deepEqual(await under.presenceEvents(carol, left), {});
    });

    it('makes neither queries nor writes while users sync', async () => {
      const under = await PresenceUnderTest.open(open);
      await under.rooms.room(alice, bob);
      const { reads } = under.rooms.database.statistics;
      under.sync(alice)();
      // The first sync reads the stored presence of Alice.
      await eventually(
        'the query for the stored presence',
        () => under.rooms.database.statistics.reads > reads,
      );
      await under.pass(second);
      await under.presenceEvents(bob, under.now);
      const before = JSON.stringify(under.rooms.database.statistics);
      for (let count = 0; count < 100; count++) {
        under.sync(alice)();
        under.rooms.clock.advance(100);
      }
      await under.presenceEvents(bob, under.now);
      assert.equal(JSON.stringify(under.rooms.database.statistics), before);
    });

    it('announces changes together, and less often the more users receive them', async () => {
      const under = await PresenceUnderTest.open(open);
      const users = Array.from({ length: 50 }, (_, index) => `@user${index}:test`);
      await under.rooms.room(alice, ...users);
      let announced = 0;
      under.presence.presenceStream.subscribe(() => announced++);
      for (const userId of users) under.sync(userId);
      await under.pass(second);
      assert.equal(announced, 1);
      under.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'hello');
      await under.pass(second / 2);
      assert.equal(announced, 1, '50 changes for 51 members are enough for more than a second');
      await under.pass(second);
      assert.equal(announced, 2);
    });

    it('keeps the presence of remote users for 30 minutes, and ignores it when untracked', async () => {
      const status = { presence: 'online', statusMsg: 'far', lastActive: 5, currentlyActive: true } as const;
      const dora = '@dora:far';
      const under = await PresenceUnderTest.open(open);
      await under.rooms.room(alice, dora);
      under.presence.report(dora, status);
      assert.deepEqual(await under.presenceEvents(alice, undefined), { [dora]: 'online' });
      await under.pass(30 * minute);
      assert.equal((await under.presence.get(alice, dora)).presence, 'offline');
      const untracked = await PresenceUnderTest.open(open, { enabled: 'untracked' });
      await untracked.rooms.room(alice, dora);
      untracked.presence.report(dora, status);
      assert.deepEqual(await untracked.presenceEvents(alice, undefined), {});
    });

    it('stores the presence of remote users only once they share a room with a local user', async () => {
      const status = { presence: 'online', statusMsg: 'far', lastActive: 5, currentlyActive: true } as const;
      const [dora, eve] = ['@dora:far', '@eve:far'];
      const under = await PresenceUnderTest.open(open);
      under.presence.report(dora, status, false);
      under.presence.report(eve, status, false);
      assert.deepEqual(
        [dora, eve].map((userId) => under.presence.peek(userId)?.presence),
        ['online', 'online'],
      );
      under.presence.report(eve, { ...status, statusMsg: 'near' }, true);
      await under.pass(minute);
      await under.presence.stop();
      assert.deepEqual([...(await under.presence.lastKnown([dora, eve])).keys()], [eve]);
    });

    it('keeps the presence of at most 10,000 remote users of a server who share no room', async () => {
      const status = {
        presence: 'online',
        statusMsg: undefined,
        lastActive: 5,
        currentlyActive: true,
      } as const;
      const under = await PresenceUnderTest.open(open);
      for (let n = 0; n < 10_010; n++) under.presence.report(`@u${n}:evil`, status, false);
      assert.equal(under.presence.presentUsers.size, 10_000);
      under.presence.report('@shared:evil', status, true);
      assert.equal(under.presence.presentUsers.size, 10_001);
      await under.pass(30 * minute);
      assert.equal(under.presence.presentUsers.size, 0);
      under.presence.report('@u0:evil', status, false);
      assert.equal(under.presence.presentUsers.size, 1);
      await under.presence.stop();
    });

    it('does not send the presence of ignored users', async () => {
      const under = await PresenceUnderTest.open(open);
      await under.rooms.room(alice, bob, carol);
      const before = under.now;
      under.sync(alice);
      under.sync(carol);
      under.ignored.add(alice);
      await under.pass(second);
      assert.deepEqual(await under.presenceEvents(bob, before), { [carol]: 'online' });
      assert.deepEqual(await under.presenceEvents(bob, undefined), { [carol]: 'online' });
      await under.presence.stop();
    });

    it('removes presence and status message of a closed account', async () => {
      const under = await PresenceUnderTest.open(open);
      await under.rooms.room(alice, bob);
      under.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'My secret');
      await under.pass(second);
      const before = under.now;
      under.presence.forget(alice);
      await under.pass(minute);
      assert.deepEqual(await under.presenceEvents(bob, before), { [alice]: 'offline' });
      await under.presence.stop();
      assert.deepEqual(await under.presence.get(bob, alice), {
        presence: 'offline',
        statusMsg: undefined,
        lastActive: 0,
        currentlyActive: false,
      });
    });

    it('does not send presence in rooms with more than 1,000 joined members', async () => {
      const under = await PresenceUnderTest.open(open);
      const roomId = await under.rooms.room(alice, bob);
      const join = (index: number) => under.rooms.join(`@user${index}:test`, roomId);
      await Promise.all(Array.from({ length: 998 }, (_, index) => join(index)));
      const before = under.now;
      under.sync(alice);
      await under.pass(second);
      assert.deepEqual(await under.presenceEvents(bob, before), { [alice]: 'online' });
      await join(998);
      assert.deepEqual(await under.presenceEvents(bob, undefined), {});
      const full = under.now;
      under.presence.set({ userId: alice, deviceId: 'D' }, 'unavailable', undefined);
      await under.pass(minute);
      assert.deepEqual(await under.presenceEvents(bob, full), {});
      assert.equal((await under.presence.get(bob, alice)).presence, 'unavailable');
      await under.presence.stop();
    });

    it('sends the presence stored before a restart to older tokens', async () => {
      const under = await PresenceUnderTest.open(open);
      await under.rooms.room(alice, bob);
      const before = under.now;
      under.sync(alice);
      await under.pass(second);
      const again = await under.restart(open);
      assert.deepEqual(await again.presenceEvents(bob, before), { [alice]: 'online' });
      await again.presence.stop();
    });

    it('[option: presence.enabled] ignores presence of clients when off or untracked; untracked accepts it from modules', async () => {
      for (const enabled of [true, false, 'untracked'] as const) {
        const under = await PresenceUnderTest.open(open, { enabled });
        await under.rooms.room(alice, bob, carol);
        under.sync(alice);
        under.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'hello');
        const status = {
          presence: 'online',
          statusMsg: undefined,
          lastActive: 5,
          currentlyActive: true,
        } as const;
        under.presence.reportByModule(carol, status);
        const expected = {
          true: { [alice]: 'online', [carol]: 'online' },
          false: {},
          untracked: { [carol]: 'online' },
        };
        assert.deepEqual(await under.presenceEvents(bob, undefined), expected[`${enabled}`]);
        const seen = await under.presence.get(bob, alice);
        assert.equal(seen.presence, enabled === true ? 'online' : 'offline');
        await under.presence.stop();
      }
    });

    it('[option: presence.include_offline_users_on_sync] includes offline users in an initial sync', async () => {
      for (const includeOffline of [false, true]) {
        const under = await PresenceUnderTest.open(open, { includeOffline });
        await under.rooms.room(alice, bob);
        under.sync(alice)();
        await under.pass(minute);
        const before = under.now;
        await under.presence.stop();
        assert.deepEqual(
          await under.presenceEvents(bob, undefined),
          includeOffline ? { [alice]: 'offline' } : {},
        );
        assert.deepEqual(await under.presenceEvents(bob, before), {});
      }
    });

    it('[option: rc_presence.per_user] limits how often a user changes presence', async () => {
      const under = await PresenceUnderTest.open(open, { limit: { per_second: 0.1, burst_count: 1 } });
      await under.rooms.room(alice, bob);
      const presenceOf = async () => (await under.presence.get(bob, alice)).presence;
      under.sync(alice);
      under.sync(alice, 'unavailable');
      assert.equal(await presenceOf(), 'online', 'a sync over the limit changes nothing and does not fail');
      under.sync(alice);
      const device = { userId: alice, deviceId: 'D' };
      assert.throws(() => under.presence.set(device, 'unavailable', undefined), {
        errcode: 'M_LIMIT_EXCEEDED',
      });
      const bridged = { ...device, isUnlimited: true };
      under.presence.beginSync(bridged, 'unavailable')();
      assert.equal(await presenceOf(), 'unavailable', 'users of application services are not limited');
      under.presence.set(bridged, 'online', undefined);
      assert.equal(await presenceOf(), 'online');
      under.rooms.clock.advance(10 * second);
      under.sync(alice, 'unavailable');
      assert.equal(await presenceOf(), 'unavailable');
      await under.presence.stop();
    });
  });
});
