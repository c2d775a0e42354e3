import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { enc, type TestClient } from '../../../test/support/users/test-client.ts';
import { assertRefused, eventOf, roomOfAnnaAndBen, ServerOfThreeUsers } from './test/three-users.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`the reason of membership changes and redactions, on ${database}`, () => {
    const users = new ServerOfThreeUsers(database);

    /** Changes Ben's membership. @returns the content of his member event */
    const changeMembership = async (user: TestClient, roomId: string, action: string, body: object) => {
      await user.do('POST', `/rooms/${enc(roomId)}/${action}`, body);
      return users.anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(users.ben.id)}`);
    };

    it('accepts a null reason, as bots send it, and omits it from the event', async () => {
      const { anna, ben } = users;
      const roomId = await roomOfAnnaAndBen(users);
      const target = { user_id: ben.id, reason: null };
      for (const [user, action, body, membership] of [
        [anna, 'kick', target, 'leave'],
        [ben, 'join', { reason: null }, 'join'],
        [anna, 'ban', target, 'ban'],
        [anna, 'unban', target, 'leave'],
        [anna, 'invite', target, 'invite'],
        [ben, 'leave', { reason: null }, 'leave'],
      ] as const) {
        const member = await changeMembership(user, roomId, action, body);
        assert.equal(member['membership'], membership, action);
        assert.ok(!Object.hasOwn(member, 'reason'), action);
      }
      const eventId = await anna.say(roomId, 'x');
      await anna.do('PUT', `/rooms/${enc(roomId)}/redact/${enc(eventId)}/r1`, { reason: null });
      const { unsigned } = await eventOf(anna, roomId, eventId);
      const because = (unsigned as Record<string, Record<string, unknown>>)['redacted_because'];
      assert.deepEqual(because?.['content'], { redacts: eventId });
    });

    it('puts a reason that is a string into the event, and refuses other types', async () => {
      const { anna, ben } = users;
      const roomId = await roomOfAnnaAndBen(users);
      const path = `/rooms/${enc(roomId)}/kick`;
      await assertRefused(anna, 'POST', path, { user_id: ben.id, reason: 5 }, 400, 'M_BAD_JSON');
      assert.equal(
        (await changeMembership(anna, roomId, 'kick', { user_id: ben.id, reason: 'why' }))['reason'],
        'why',
      );
    });
  });
}
