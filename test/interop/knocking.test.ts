import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { Meeting } from './meeting.ts';
import { enc, joinPath, knockPath, type Someone } from './someone.ts';

const toKnockAt = (host: Someone) => {
  const rules = { type: 'm.room.join_rules', state_key: '', content: { join_rule: 'knock' } };
  return host.room({ name: 'A door', initial_state: [rules] });
};

Meeting.of('knocking', (meeting) => {
  meeting.bothWays('somebody knocks and is let in', async ({ host, guest }) => {
    const room = await toKnockAt(host);
    await guest.do('POST', knockPath(room, host.server), { reason: 'please' });
    await guest.listed(room, 'knock');
    const { membership, reason } = await host.member(room, guest);
    assert.deepEqual([membership, reason], ['knock', 'please']);
    await host.invite(guest, room);
    await guest.accept(room);
  });

  // The other server does not take note of the end of a knock, so who is turned down hears of it from Hearth alone.
  meeting.bothWays('a knock is turned down, and the next one is not', async ({ host, guest }) => {
    const room = await toKnockAt(host);
    await guest.do('POST', knockPath(room, host.server), { reason: 'please' });
    await host.seesAs('knock', guest, room);
    await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id, reason: 'no' });
    assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403);
    await guest.do('POST', knockPath(room, host.server), { reason: 'pretty please' });
    await eventually('the second knock', async () => {
      return (await host.member(room, guest))['reason'] === 'pretty please';
    });
    await host.invite(guest, room);
    await guest.accept(room);
  });

  // The other server tells nobody when one of its users takes back a knock: there, only that user hears of it.
  meeting.bothWays(
    'a knock is taken back',
    async ({ host, guest }) => {
      const room = await toKnockAt(host);
      await guest.do('POST', knockPath(room, host.server));
      await host.seesAs('knock', guest, room);
      await guest.leave(room);
      await guest.listed(room, 'leave');
      if (guest === meeting.here.one) await host.seesAs('leave', guest, room);
    },
    { endsApart: true },
  );
});
