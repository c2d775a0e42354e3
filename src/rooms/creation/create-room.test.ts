import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';

const users = (count: number) => Array.from({ length: count }, (_, index) => `@user${index}:test`);

forSelectedDatabases(import.meta.url, (open) => {
  describe('RoomCreation', () => {
    it('invites hundreds of local users with fewer than 100 flushes, the first 100 users among the first events of the room', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.rooms.creation.create(alice, { invite: users(250), is_direct: true });
      const head = await fixture.engine.heads.get(roomId);
      for (const userId of users(250)) assert.equal(head?.membership(userId), 'invite', userId);
      const { flushes } = fixture.database.statistics;
      assert.ok(flushes < 100, `${flushes} flushes`);
    });

    it('rejects a room beyond the rate limit before it looks up users', async () => {
      let lookups = 0;
      const limit = { take: () => undefined, check: () => undefined };
      const refused = () => {
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
          rc_room_creation: { take: refused, check: refused },
        },
      });
      const { reads, scans } = fixture.database.statistics;
      const creating = fixture.rooms.creation.create(alice, { invite: users(10) }, { userId: alice });
      await assert.rejects(creating, /limited/);
      const after = fixture.database.statistics;
      assert.deepEqual([after.reads + after.scans - reads - scans, lookups], [0, 0]);
    });
  });
});
