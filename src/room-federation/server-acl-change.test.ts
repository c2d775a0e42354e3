import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { creator, joinedRoom } from './test/joined-room.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('Incoming for a room whose servers are in backoff', () => {
    it('places staged events at once when a server sends a new server ACL', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      room.say(creator, 'lost');
      const first = room.say(creator, 'first');
      peers.down.add('a.example').add('b.example');
      await send('a.example', first);
      peers.down.clear();
      fixture.clock.advance(1_000);
      await fixture.rooms.incoming.settled();
      assert.deepEqual(await statuses(first), ['unknown'], 'its server is in backoff');
      const content = { allow: ['*'] };
      const acl = room.add({ type: 'm.room.server_acl', sender: creator, stateKey: '', content });
      await send('a.example', acl);
      assert.deepEqual(await statuses(first, acl), ['placed', 'placed']);
    });
  });
});
