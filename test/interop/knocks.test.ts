import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { InteropSuite } from './interop-suite.ts';
import { enc, type InteropUser, joinPath, knockPath } from './interop-user.ts';

const roomWithKnocks = (host: InteropUser) => {
  const rules = { type: 'm.room.join_rules', state_key: '', content: { join_rule: 'knock' } };
  return host.createRoom({ name: 'A door', initial_state: [rules] });
};

InteropSuite.onSharedServers('knocking', (suite) => {
  suite.bothWays('accepts a knock by an invite', async ({ host, guest }) => {
    const room = await roomWithKnocks(host);
    await guest.do('POST', knockPath(room, host.server), { reason: 'please' });
    await guest.waitForRoom(room, 'knock');
    const { membership, reason } = await host.member(room, guest);
    assert.deepEqual([membership, reason], ['knock', 'please']);
    await host.invite(guest, room);
    await guest.acceptInvite(room);
  });

  // The reference server ignores the end of a knock, so the user only notices that the join is refused.
  suite.bothWays('rejects a knock, and accepts a later knock of the same user', async ({ host, guest }) => {
    const room = await roomWithKnocks(host);
    await guest.do('POST', knockPath(room, host.server), { reason: 'please' });
    await host.waitForMembership('knock', guest, room);
    await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id, reason: 'no' });
    assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403);
    await guest.do('POST', knockPath(room, host.server), { reason: 'pretty please' });
    await eventually('the second knock', async () => {
      return (await host.member(room, guest))['reason'] === 'pretty please';
    });
    await host.invite(guest, room);
    await guest.acceptInvite(room);
  });

  // The reference server sends no leave event when one of its users withdraws a knock: only the user's own
  // /sync shows it.
  suite.bothWays(
    'withdraws a knock',
    async ({ host, guest }) => {
      const room = await roomWithKnocks(host);
      await guest.do('POST', knockPath(room, host.server));
      await host.waitForMembership('knock', guest, room);
      await guest.leave(room);
      await guest.waitForRoom(room, 'leave');
      if (guest === suite.onHearth.first) await host.waitForMembership('leave', guest, room);
    },
    { endsWithoutSharedRoom: true },
  );
});
