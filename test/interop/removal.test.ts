import assert from 'node:assert/strict';
import { InteropSuite } from './interop-suite.ts';
import { enc, joinPath } from './interop-user.ts';

InteropSuite.onSharedServers('removal', (suite) => {
  const { bothWays, scenario } = suite;

  bothWays(
    'hides new events from a user who has left',
    async ({ host, guest }) => {
      const room = await host.createRoomWith([guest]);
      await guest.leave(room);
      await host.waitForMembership('leave', guest, room);
      const hiddenId = await host.say(room, 'after the leave');
      assert.equal((await guest.call('GET', `/rooms/${enc(room)}/event/${enc(hiddenId)}`)).status, 404);
    },
    { endsWithoutSharedRoom: true },
  );

  bothWays('removes a kicked user, who can join again', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    await host.do('POST', `/rooms/${enc(room)}/kick`, { user_id: guest.id, reason: 'enough' });
    await guest.waitForRoom(room, 'leave');
    await guest.join(room, host.server);
  });

  bothWays('keeps a banned user out until the unban', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    await host.do('POST', `/rooms/${enc(room)}/ban`, { user_id: guest.id });
    await guest.waitForRoom(room, 'leave');
    assert.equal((await guest.call('POST', joinPath(room, host.server))).status, 403);
    await host.do('POST', `/rooms/${enc(room)}/unban`, { user_id: guest.id });
    await guest.join(room, host.server);
  });

  bothWays(
    'bans a user while they are sending messages',
    async ({ host, guests: { first: guest, second: witness } }) => {
      const room = await host.createRoomWith([guest, witness]);
      // The host's server sends events after the ban to the guests' server only if it knows the witness as joined.
      await host.waitForMembership('join', witness, room);
      const send = (id: string) =>
        guest.call('PUT', `/rooms/${enc(room)}/send/m.room.message/${id}`, { msgtype: 'm.text', body: id });
      const sending = Array.from({ length: 20 }, (_, index) => send(`talk${index}`));
      await host.do('POST', `/rooms/${enc(room)}/ban`, { user_id: guest.id });
      await Promise.all(sending);
      await witness.waitForMembership('ban', guest, room);
      assert.equal((await send('late')).status, 403);
      for (const user of [host, witness]) {
        const eventId = await user.say(room, 'after the ban');
        await Promise.all([host.waitForEvent(room, eventId), witness.waitForEvent(room, eventId)]);
      }
    },
  );

  bothWays(
    'lets a user with power level 50 ban a user of the other server',
    async ({ host, hosts, guest }) => {
      const room = await host.createRoomWith([hosts.second, guest]);
      await host.setLevels(room, { [guest.id]: 50 });
      await guest.waitForPowerLevel(room, guest, 50);
      await guest.do('POST', `/rooms/${enc(room)}/ban`, { user_id: hosts.second.id });
      await host.waitForMembership('ban', hosts.second, room);
      assert.equal((await hosts.second.call('POST', joinPath(room, host.server))).status, 403);
    },
  );

  bothWays('applies a server ACL that denies the other server, and its removal', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    await guest.waitForEvent(room, await host.say(room, 'welcome'));
    // Waits until the guest's server knows all members: it may need requests for that, which the ACL would refuse.
    await guest.waitForMembership('join', host, room);
    const allowAll = { allow: ['*'], allow_ip_literals: false };
    const deny = [guest.server.name.split(':')[0]];
    const aclId = await host.setState(room, 'm.room.server_acl', { ...allowAll, deny });
    await guest.waitForEvent(room, aclId);
    const hiddenId = await guest.say(room, 'while denied');
    const visibleId = await host.say(room, 'from the host while denied');
    await guest.waitForEvent(room, visibleId);
    assert.equal((await host.call('GET', `/rooms/${enc(room)}/event/${enc(hiddenId)}`)).status, 404);
    await guest.waitForEvent(room, await host.setState(room, 'm.room.server_acl', { ...allowAll, deny: [] }));
    const deliveredId = await guest.say(room, 'after the ACL was lifted');
    for (const id of [deliveredId, hiddenId]) await host.waitForEvent(room, id);
  });

  // In the other direction, the reference server would not recover (docs/interoperability.md).
  scenario(
    'delivers messages of Hearth once the server ACL that denied Hearth directly after its join is lifted',
    async () => {
      const [host, guest] = [suite.onReference.first, suite.onHearth.first];
      const room = await host.createRoomWith([guest]);
      const allowAll = { allow: ['*'], allow_ip_literals: false };
      const deny = [guest.server.name.split(':')[0]];
      await host.setState(room, 'm.room.server_acl', { ...allowAll, deny });
      await guest.waitForEvent(
        room,
        await host.setState(room, 'm.room.server_acl', { ...allowAll, deny: [] }),
      );
      await host.waitForEvent(room, await guest.say(room, 'hello'));
    },
  );
});
