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
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      await fixture.rooms.room(carol);
      const before = fixture.now;
      fixture.sync(alice);
      await fixture.pass(second);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'online' });
      assert.deepEqual(await fixture.presenceEvents(alice, before), { [alice]: 'online' });
      assert.deepEqual(await fixture.presenceEvents(carol, before), {});
      assert.deepEqual(await fixture.presenceEvents(bob, fixture.now), {});
      assert.deepEqual(await fixture.presenceEvents(bob, undefined), { [alice]: 'online' });
      assert.deepEqual(await fixture.presenceEvents(carol, undefined), {});
      await assert.rejects(fixture.presence.get(carol, alice), { errcode: 'M_FORBIDDEN' });
      const status = await fixture.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.currentlyActive], ['online', true]);
    });

    it('sends the presence of offline members once to a user who joins their room, and the presence of that user to them', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const room = await fixture.rooms.room(alice, bob);
      const before = fixture.now;
      await fixture.rooms.join(carol, room);
      for (const viewer of [alice, bob]) {
        assert.deepEqual(await fixture.presenceEvents(viewer, before), { [carol]: 'offline' });
        assert.deepEqual(await fixture.presenceEvents(viewer, fixture.now), {});
      }
      assert.deepEqual(await fixture.presenceEvents(carol, before), { [alice]: 'offline', [bob]: 'offline' });
      assert.deepEqual(await fixture.presenceEvents(carol, fixture.now), {});
    });

    it('makes a user offline 30 seconds after the last sync', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      const end = fixture.sync(alice);
      await fixture.pass(40 * second);
      end();
      const before = fixture.now;
      await fixture.pass(29 * second);
      assert.equal((await fixture.presence.get(bob, alice)).presence, 'online');
      await fixture.pass(second);
      await fixture.pass(30 * second);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'offline' });
      assert.equal(fixture.presence.usersNotOffline.size, 0);
      await fixture.presence.stop();
      const status = await fixture.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.lastActive > 0], ['offline', true]);
    });

    it('makes a syncing user unavailable without activity, and online again with a message', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const roomId = await fixture.rooms.room(alice, bob);
      fixture.sync(alice);
      await fixture.pass(2 * minute);
      const before = fixture.now;
      await fixture.pass(4 * minute);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'unavailable' });
      const idle = fixture.now;
      await fixture.rooms.say(alice, roomId, 'I am back');
      await fixture.pass(minute / 2);
      assert.deepEqual(await fixture.presenceEvents(bob, idle), { [alice]: 'online' });
    });

    it('stores a presence that the user sets, with a status message that survives restarts', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      const device = { userId: alice, deviceId: 'D' };
      fixture.presence.set(device, 'unavailable', 'Out for lunch');
      const status = await fixture.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.statusMsg], ['unavailable', 'Out for lunch']);
      const again = await fixture.restart(open);
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
      const fixture = await PresenceUnderTest.open(open);
      const roomId = await fixture.rooms.room(alice);
      fixture.sync(alice);
      fixture.sync(carol);
      await fixture.pass(second);
      const before = fixture.now;
      await fixture.rooms.join(carol, roomId);
      assert.deepEqual(await fixture.presenceEvents(carol, before), { [alice]: 'online', [carol]: 'online' });
      await fixture.pass(minute / 2);
      assert.deepEqual(await fixture.presenceEvents(alice, before), { [carol]: 'online' });
      const left = fixture.now;
      await fixture.rooms.leave(carol, roomId);
      fixture.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'secret');
      await fixture.pass(minute / 2);
      assert.deepEqual(await fixture.presenceEvents(carol, left), {});
    });

    it('makes neither queries nor writes while users sync', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      const { reads } = fixture.rooms.database.statistics;
      fixture.sync(alice)();
      // The first sync reads the stored presence of Alice.
      await eventually(
        'the query for the stored presence',
        () => fixture.rooms.database.statistics.reads > reads,
      );
      await fixture.pass(second);
      await fixture.presenceEvents(bob, fixture.now);
      const before = JSON.stringify(fixture.rooms.database.statistics);
      for (let count = 0; count < 100; count++) {
        fixture.sync(alice)();
        fixture.rooms.clock.advance(100);
      }
      await fixture.presenceEvents(bob, fixture.now);
      assert.equal(JSON.stringify(fixture.rooms.database.statistics), before);
    });

    it('announces changes together, and less often the more users receive them', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const users = Array.from({ length: 50 }, (_, index) => `@user${index}:test`);
      await fixture.rooms.room(alice, ...users);
      let announced = 0;
      fixture.presence.presenceStream.subscribe(() => announced++);
      for (const userId of users) fixture.sync(userId);
      await fixture.pass(second);
      assert.equal(announced, 1);
      fixture.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'hello');
      await fixture.pass(second / 2);
      assert.equal(announced, 1, '50 changes for 51 members are enough for more than a second');
      await fixture.pass(second);
      assert.equal(announced, 2);
    });

    it('keeps the presence of remote users for 30 minutes, and ignores it when untracked', async () => {
      const status = { presence: 'online', statusMsg: 'far', lastActive: 5, currentlyActive: true } as const;
      const dora = '@dora:far';
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, dora);
      fixture.presence.report(dora, status);
      assert.deepEqual(await fixture.presenceEvents(alice, undefined), { [dora]: 'online' });
      await fixture.pass(30 * minute);
      assert.equal((await fixture.presence.get(alice, dora)).presence, 'offline');
      const untracked = await PresenceUnderTest.open(open, { enabled: 'untracked' });
      await untracked.rooms.room(alice, dora);
      untracked.presence.report(dora, status);
      assert.deepEqual(await untracked.presenceEvents(alice, undefined), {});
    });

    it('stores the presence of remote users only once they share a room with a local user', async () => {
      const status = { presence: 'online', statusMsg: 'far', lastActive: 5, currentlyActive: true } as const;
      const [dora, eve] = ['@dora:far', '@eve:far'];
      const fixture = await PresenceUnderTest.open(open);
      fixture.presence.report(dora, status, false);
      fixture.presence.report(eve, status, false);
      assert.deepEqual(
        [dora, eve].map((userId) => fixture.presence.peek(userId)?.presence),
        ['online', 'online'],
      );
      fixture.presence.report(eve, { ...status, statusMsg: 'near' }, true);
      await fixture.pass(minute);
      await fixture.presence.stop();
      assert.deepEqual([...(await fixture.presence.lastKnown([dora, eve])).keys()], [eve]);
    });

    it('keeps the presence of at most 10,000 remote users of a server who share no room', async () => {
      const status = {
        presence: 'online',
        statusMsg: undefined,
        lastActive: 5,
        currentlyActive: true,
      } as const;
      const fixture = await PresenceUnderTest.open(open);
      for (let n = 0; n < 10_010; n++) fixture.presence.report(`@u${n}:evil`, status, false);
      assert.equal(fixture.presence.usersNotOffline.size, 10_000);
      fixture.presence.report('@shared:evil', status, true);
      assert.equal(fixture.presence.usersNotOffline.size, 10_001);
      await fixture.pass(30 * minute);
      assert.equal(fixture.presence.usersNotOffline.size, 0);
      fixture.presence.report('@u0:evil', status, false);
      assert.equal(fixture.presence.usersNotOffline.size, 1);
      await fixture.presence.stop();
    });

    it('does not send the presence of ignored users', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob, carol);
      const before = fixture.now;
      fixture.sync(alice);
      fixture.sync(carol);
      fixture.ignored.add(alice);
      await fixture.pass(second);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [carol]: 'online' });
      assert.deepEqual(await fixture.presenceEvents(bob, undefined), { [carol]: 'online' });
      await fixture.presence.stop();
    });

    it('removes presence and status message of a closed account', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      fixture.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'My secret');
      await fixture.pass(second);
      const before = fixture.now;
      fixture.presence.forget(alice);
      await fixture.pass(minute);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'offline' });
      await fixture.presence.stop();
      assert.deepEqual(await fixture.presence.get(bob, alice), {
        presence: 'offline',
        statusMsg: undefined,
        lastActive: 0,
        currentlyActive: false,
      });
    });

    it('does not send presence in rooms with more than 1,000 joined members', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const roomId = await fixture.rooms.room(alice, bob);
      const join = (index: number) => fixture.rooms.join(`@user${index}:test`, roomId);
      await Promise.all(Array.from({ length: 998 }, (_, index) => join(index)));
      const before = fixture.now;
      fixture.sync(alice);
      await fixture.pass(second);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'online' });
      await join(998);
      assert.deepEqual(await fixture.presenceEvents(bob, undefined), {});
      const full = fixture.now;
      fixture.presence.set({ userId: alice, deviceId: 'D' }, 'unavailable', undefined);
      await fixture.pass(minute);
      assert.deepEqual(await fixture.presenceEvents(bob, full), {});
      assert.equal((await fixture.presence.get(bob, alice)).presence, 'unavailable');
      await fixture.presence.stop();
    });

    it('sends the presence stored before a restart to older tokens', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      const before = fixture.now;
      fixture.sync(alice);
      await fixture.pass(second);
      const again = await fixture.restart(open);
      assert.deepEqual(await again.presenceEvents(bob, before), { [alice]: 'online' });
      await again.presence.stop();
    });

    it('[option: presence.enabled] ignores presence of clients when off or untracked; untracked accepts it from modules', async () => {
      for (const enabled of [true, false, 'untracked'] as const) {
        const fixture = await PresenceUnderTest.open(open, { enabled });
        await fixture.rooms.room(alice, bob, carol);
        fixture.sync(alice);
        fixture.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'hello');
        const status = {
          presence: 'online',
          statusMsg: undefined,
          lastActive: 5,
          currentlyActive: true,
        } as const;
        fixture.presence.reportByModule(carol, status);
        const expected = {
          true: { [alice]: 'online', [carol]: 'online' },
          false: {},
          untracked: { [carol]: 'online' },
        };
        assert.deepEqual(await fixture.presenceEvents(bob, undefined), expected[`${enabled}`]);
        const seen = await fixture.presence.get(bob, alice);
        assert.equal(seen.presence, enabled === true ? 'online' : 'offline');
        await fixture.presence.stop();
      }
    });

    it('[option: presence.include_offline_users_on_sync] includes offline users in an initial sync', async () => {
      for (const includeOffline of [false, true]) {
        const fixture = await PresenceUnderTest.open(open, { includeOffline });
        await fixture.rooms.room(alice, bob);
        fixture.sync(alice)();
        await fixture.pass(minute);
        const before = fixture.now;
        await fixture.presence.stop();
        assert.deepEqual(
          await fixture.presenceEvents(bob, undefined),
          includeOffline ? { [alice]: 'offline' } : {},
        );
        assert.deepEqual(await fixture.presenceEvents(bob, before), {});
      }
    });

    it('[option: rc_presence.per_user] limits how often a user changes presence', async () => {
      const fixture = await PresenceUnderTest.open(open, { limit: { per_second: 0.1, burst_count: 1 } });
      await fixture.rooms.room(alice, bob);
      const presenceOf = async () => (await fixture.presence.get(bob, alice)).presence;
      fixture.sync(alice);
      fixture.sync(alice, 'unavailable');
      assert.equal(await presenceOf(), 'online', 'a sync over the limit changes nothing and does not fail');
      fixture.sync(alice);
      const device = { userId: alice, deviceId: 'D' };
      assert.throws(() => fixture.presence.set(device, 'unavailable', undefined), {
        errcode: 'M_LIMIT_EXCEEDED',
      });
      const bridged = { ...device, isUnlimited: true };
      fixture.presence.beginSync(bridged, 'unavailable')();
      assert.equal(await presenceOf(), 'unavailable', 'users of application services are not limited');
      fixture.presence.set(bridged, 'online', undefined);
      assert.equal(await presenceOf(), 'online');
      fixture.rooms.clock.advance(10 * second);
      fixture.sync(alice, 'unavailable');
      assert.equal(await presenceOf(), 'unavailable');
      await fixture.presence.stop();
    });
  });
});
