import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { EventCheck } from '../../room-engine/index.ts';

const userIds = (count: number) => Array.from({ length: count }, (_, index) => `@user${index}:test`);

forSelectedDatabases(import.meta.url, (open) => {
  describe('creating rooms (RoomCreation)', () => {
    it('invites hundreds of local users with fewer than 100 flushes, and the first 100 invites are among the first events of the room', async () => {
      let firstInvitees: (string | undefined)[] = [];
      const check: EventCheck['check'] = async (_draft, { newRoom }) => {
        const invites = newRoom?.filter(({ content }) => content['membership'] === 'invite');
        firstInvitees = invites?.map(({ stateKey }) => stateKey) ?? firstInvitees;
        return undefined;
      };
      const fixture = await RoomsUnderTest.open(open, [], { eventChecks: () => [{ check }] });
      const roomId = await fixture.rooms.creation.create(alice, { invite: userIds(250), is_direct: true });
      const head = await fixture.engine.heads.get(roomId);
      for (const userId of userIds(250)) assert.equal(head?.membership(userId), 'invite', userId);
      const { flushes } = fixture.database.statistics;
      assert.ok(flushes < 100, `${flushes} flushes`);
      assert.deepEqual(firstInvitees, userIds(100));
    });

    it('creates rooms with different ids when a user creates equal rooms of version 12 at the same time', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const create = () => fixture.rooms.creation.create(alice, { room_version: '12' });
      const roomIds = await Promise.all([create(), create(), create()]);
      assert.equal(new Set(roomIds).size, 3);
      for (const roomId of roomIds)
        assert.equal((await fixture.engine.heads.get(roomId))?.membership(alice), 'join');
    });

    it('refuses to create a room beyond the rate limit before it reads the database or looks up profiles', async () => {
      let lookups = 0;
      const limit = { take: () => undefined, check: () => undefined };
      const throwLimited = () => {
        throw new Error('limited');
      };
      const fixture = await RoomsUnderTest.open(open, [], {
        profiles: {
          profile: async () => {
            lookups++;
            return {};
          },
        },
        limits: {
          rc_message: limit,
          rc_admin_redaction: limit,
          rc_joins: limit,
          rc_remote_joins: limit,
          rc_joins_per_room: limit,
          rc_invites: { per_room: limit, per_user: limit, per_issuer: limit },
          rc_room_creation: { take: throwLimited, check: throwLimited },
        },
      });
      const { reads, scans } = fixture.database.statistics;
      const creating = fixture.rooms.creation.create(alice, { invite: userIds(10) }, { userId: alice });
      await assert.rejects(creating, /limited/);
      const after = fixture.database.statistics;
      assert.deepEqual([after.reads + after.scans - reads - scans, lookups], [0, 0]);
    });
  });
});
