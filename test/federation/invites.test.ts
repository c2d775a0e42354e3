import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { PushGateway } from '../../src/pushers/test/push-gateway.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

/** Returns the membership of `userId`, as `user` sees it. */
async function membershipFor(user: TestClient, roomId: string, userId: string): Promise<unknown> {
  const path = `/rooms/${enc(roomId)}/state/m.room.member/${enc(userId)}`;
  return (await user.do('GET', path))['membership'];
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('an invite to a user of another server', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      ({ several, a, b, anna, ben } = await SeveralServers.pair(kind));
    });
    after(() => several.stop());

    const invite = (roomId: string, userId = ben.id) =>
      anna.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: userId, reason: 'come' });

    for (const version of ['1', '2', '3', '6', '10', '11', '12']) {
      it(`shows the stripped state and lets the user join, in room version ${version}`, async () => {
        const roomId = await anna.createRoom({
          preset: 'private_chat',
          room_version: version,
          name: 'Secrets',
        });
        const { status, raw } = await invite(roomId);
        assert.equal(status, 200, raw);
        const { rooms } = await ben.sync();
        const inviteState = rooms?.invite?.[roomId]?.invite_state.events ?? [];
        const name = inviteState.find(({ type }) => type === 'm.room.name');
        assert.equal(name?.content['name'], 'Secrets');
        assert.ok(inviteState.some(({ type }) => type === 'm.room.create'));
        const member = inviteState.find(
          ({ type, state_key }) => type === 'm.room.member' && state_key === ben.id,
        );
        assert.deepEqual([member?.sender, member?.content['membership']], [anna.id, 'invite']);
        assert.equal(inviteState[0]!.event_id, undefined);
        const inviter = inviteState.find(({ state_key: key }) => key === anna.id);
        assert.deepEqual([inviter?.type, inviter?.content['displayname']], ['m.room.member', 'anna']);
        // The request to join names no server, so that make_join and send_join go to the inviting server.
        await ben.join(roomId);
        assert.equal(await membershipFor(ben, roomId, ben.id), 'join');
        assert.equal(await membershipFor(anna, roomId, ben.id), 'join');
        assert.equal((await ben.sync()).rooms?.invite?.[roomId], undefined);
      });
    }

    it('notifies the push gateway of the invited user, with the names of the inviter and the room', async () => {
      const gateway = await PushGateway.start();
      const gus = await b.registerClient(`gus${kind}`);
      await gus.do('POST', '/pushers/set', {
        kind: 'http',
        app_id: 'app',
        pushkey: 'key',
        app_display_name: 'App',
        device_display_name: 'Phone',
        lang: 'en',
        data: { url: gateway.url() },
      });
      const roomId = await anna.createRoom({ preset: 'private_chat', name: 'Secrets' });
      assert.equal((await invite(roomId, gus.id)).status, 200);
      const { counts, devices, ...sent } = await gateway.notification(0);
      const { room_id, type, membership, user_is_target, sender_display_name, room_name } = sent;
      assert.deepEqual(
        [room_id, type, membership, user_is_target, sender_display_name, room_name],
        [roomId, 'm.room.member', 'invite', true, 'anna', 'Secrets'],
      );
      assert.deepEqual([counts, devices[0]?.pushkey], [{ unread: 1 }, 'key']);
      await gateway.stop();
    });

    it('rejects an invite at the inviting server, with the reason', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat' });
      await invite(roomId);
      const since = (await ben.sync()).next_batch;
      await ben.do('POST', `/rooms/${enc(roomId)}/leave`, { reason: 'no' });
      const member = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(ben.id)}`);
      assert.deepEqual([member['membership'], member['reason']], ['leave', 'no']);
      const { rooms } = await ben.sync(since);
      assert.ok(rooms?.leave?.[roomId]);
      assert.equal((await ben.sync()).rooms?.invite?.[roomId], undefined);
      await ben.membership('forget', roomId);
      assert.equal((await invite(roomId)).status, 200);
      assert.ok((await ben.sync()).rooms?.invite?.[roomId]);
    });

    it('rejects an invite locally while the inviting server is unreachable, and remotely later', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat' });
      await invite(roomId);
      a.disconnect();
      await ben.leave(roomId);
      assert.equal((await ben.sync()).rooms?.invite?.[roomId], undefined);
      a.reconnect();
      assert.equal(await membershipFor(anna, roomId, ben.id), 'invite');
      await b.restart();
      assert.equal((await ben.sync()).rooms?.invite?.[roomId], undefined);
      // Any request of the inviting server shows that this server is reachable again, and triggers the pending leave.
      await invite(await anna.createRoom({ preset: 'private_chat' }));
      await until(async () => (await membershipFor(anna, roomId, ben.id)) === 'leave');
    });

    it('keeps an invite across a restart', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat', name: 'Kept' });
      await invite(roomId);
      await b.restart();
      const inviteState = (await ben.sync()).rooms?.invite?.[roomId]?.invite_state.events ?? [];
      assert.ok(inviteState.some(({ content }) => content['name'] === 'Kept'));
      await ben.join(roomId);
    });

    it('invites a user id without an account, and shows the invite after the registration', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat' });
      assert.equal((await invite(roomId, `@late${kind}:b.test`)).status, 200);
      const lateUser = await b.registerClient(`late${kind}`);
      assert.ok((await lateUser.sync()).rooms?.invite?.[roomId]);
      await lateUser.join(roomId);
      assert.equal(await membershipFor(anna, roomId, lateUser.id), 'join');
    });

    it('fails the invite while the remote server is unreachable', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat' });
      b.disconnect();
      const answer = await invite(roomId);
      assert.deepEqual([answer.status, answer.body['errcode']], [502, 'M_UNKNOWN']);
      b.reconnect();
      const { joined } = await anna.do('GET', `/rooms/${enc(roomId)}/joined_members`);
      assert.deepEqual(Object.keys(joined as object), [anna.id]);
      const members = await anna.do('GET', `/rooms/${enc(roomId)}/members`);
      assert.equal((members['chunk'] as unknown[]).length, 1);
    });

    it('refuses the invite when the inviter lacks the power level', async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      const albert = await a.registerClient(`albert${kind}`);
      await albert.join(roomId);
      await anna.setState(roomId, 'm.room.power_levels', { users: { [anna.id]: 100 }, invite: 50 });
      const { status, body } = await albert.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: ben.id });
      assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal((await ben.sync()).rooms?.invite?.[roomId], undefined);
    });

    it('refuses remote invites, joins and knocks in rooms with m.federate false', async () => {
      const unfederated = { creation_content: { 'm.federate': false }, invite: [ben.id] };
      const knockRule = [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }];
      const roomId = await anna.createRoom({ preset: 'public_chat', ...unfederated });
      const knockRoom = await anna.createRoom({
        preset: 'private_chat',
        initial_state: knockRule,
        ...unfederated,
      });
      const refusals = [
        await invite(roomId),
        await ben.call('POST', `/join/${enc(roomId)}`, {}, { via: 'a.test' }),
        await ben.call('POST', `/knock/${enc(knockRoom)}`, {}, { via: 'a.test' }),
      ];
      for (const { status, body } of refusals) {
        assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN'], JSON.stringify(body));
      }
      const { rooms } = await ben.sync();
      assert.deepEqual([rooms?.invite?.[roomId], rooms?.invite?.[knockRoom]], [undefined, undefined]);
      const { chunk } = await anna.do('GET', `/rooms/${enc(roomId)}/members`);
      assert.equal((chunk as unknown[]).length, 1);
      const albert = await a.registerClient(`near${kind}`);
      await albert.join(roomId);
    });

    for (const name of [undefined, 'Named']) {
      it(`shows the invite in unsigned.prev_content of the join, in a room with${name ? '' : 'out'} a name`, async () => {
        const roomId = await anna.createRoom({
          preset: 'trusted_private_chat',
          is_direct: true,
          invite: [ben.id],
          ...(name && { name }),
        });
        const since = (await ben.sync()).next_batch;
        await ben.join(roomId);
        let events: readonly ClientEventJson[] = [];
        // The room is left out of /sync until its members are known.
        await until(async () => {
          const { rooms } = await ben.sync(since);
          events = rooms?.join?.[roomId]?.timeline?.events ?? [];
          return events.length > 0;
        });
        const join = events.find(({ type, state_key: key }) => type === 'm.room.member' && key === ben.id);
        const previous = join?.unsigned?.['prev_content'] as JsonObject | undefined;
        assert.deepEqual([previous?.['membership'], previous?.['is_direct']], ['invite', true]);
        assert.equal(join?.unsigned?.['prev_sender'], anna.id);
      });
    }

    it('ends an invite when another user of the room kicks the invited user', async () => {
      const albert = await a.registerClient(`kicker${kind}`);
      const roomId = await anna.createRoom({
        preset: 'private_chat',
        invite: [albert.id, ben.id],
        power_level_content_override: { users: { [anna.id]: 100, [albert.id]: 50 } },
      });
      await albert.join(roomId);
      assert.ok((await ben.sync()).rooms?.invite?.[roomId]);
      await albert.do('POST', `/rooms/${enc(roomId)}/kick`, { user_id: ben.id });
      await until(async () => (await ben.sync()).rooms?.invite?.[roomId] === undefined);
    });

    it('sends the invites of a new room, also when one of them fails', async () => {
      const roomId = await anna.createRoom({
        preset: 'trusted_private_chat',
        is_direct: true,
        invite: [ben.id, '@ghost:nowhere.test'],
      });
      const inviteState = (await ben.sync()).rooms?.invite?.[roomId]?.invite_state.events ?? [];
      const member = inviteState.find(({ state_key }) => state_key === ben.id);
      assert.equal(member?.content['is_direct'], true);
      await ben.join(roomId);
    });

    it('ends the invite of a user who was kicked while the server was unreachable, once another local user joins', async () => {
      const bea = await b.registerClient(`bea${kind}`);
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      await invite(roomId);
      const since = (await ben.sync()).next_batch;
      b.disconnect();
      await anna.do('POST', `/rooms/${enc(roomId)}/kick`, { user_id: ben.id });
      b.reconnect();
      assert.ok((await ben.sync()).rooms?.invite?.[roomId]);
      await bea.do('POST', `/join/${enc(roomId)}?server_name=a.test`, {});
      const { rooms } = await ben.sync(since);
      assert.ok(rooms?.leave?.[roomId]);
      assert.equal((await ben.sync()).rooms?.invite?.[roomId], undefined);
    });

    it('ends an invite when the invited user is kicked or banned', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat' });
      await invite(roomId);
      await anna.do('POST', `/rooms/${enc(roomId)}/kick`, { user_id: ben.id });
      assert.equal(await membershipFor(anna, roomId, ben.id), 'leave');
      const isInvited = async () => (await ben.sync()).rooms?.invite?.[roomId] !== undefined;
      await until(async () => !(await isInvited()));
      assert.equal((await invite(roomId)).status, 200);
      assert.equal(await isInvited(), true);
      await anna.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: ben.id });
      assert.equal(await membershipFor(anna, roomId, ben.id), 'ban');
      await until(async () => !(await isInvited()));
      await anna.do('POST', `/rooms/${enc(roomId)}/unban`, { user_id: ben.id });
      assert.equal(await membershipFor(anna, roomId, ben.id), 'leave');
    });
  });
});
