import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { RoomEvent } from '../../../src/protocol/index.ts';
import { forSelectedDatabases } from '../../support/databases/databases.ts';
import { until } from '../../support/other-servers/federation-sender.ts';
import { registerAdmin } from '../../support/users/register-admin.ts';
import { enc, TestClient } from '../../support/users/test-client.ts';
import { ResidentRooms } from './resident-rooms.ts';

/** Milliseconds that changes of memberships wait for the members of a room. */
const membersTimeout = 10_000;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a room that was joined without members, until its members are known', () => {
    let residents: ResidentRooms;
    let anna: TestClient;
    before(async () => {
      residents = await ResidentRooms.start(kind);
      anna = residents.anna;
    });
    after(() => residents.stop());

    it('lets a second local user join, leave, be kicked and banned by a remote user, and join again, before the members are known', async () => {
      const { resident, roomId, path, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      const alan = await residents.a.registerClient(`alan${residents.count}`);
      const isJoined = async () =>
        ((await alan.do('GET', '/joined_rooms'))['joined_rooms'] as string[]).includes(roomId);
      await join(alan);
      assert.equal(await isJoined(), true);
      await alan.do('POST', `${path}/leave`, {});
      assert.equal(await isJoined(), false);
      await until(() =>
        resident.received.some(
          ({ sender, content }) => sender === alan.id && content['membership'] === 'leave',
        ),
      );
      resident.accept(resident.received.at(-1)!);
      await join(alan);
      assert.equal(await isJoined(), true);
      for (const membership of ['leave', 'ban', 'leave']) {
        await resident.send(
          resident.setState('m.room.member', { membership }, alan.id, resident.room.creator),
        );
        await until(async () => !(await isJoined()));
      }
      await join(alan);
      assert.equal(await isJoined(), true);
      release();
      assert.ok((await members()).includes(alan.id));
      assert.equal(await isJoined(), true);
    });

    it('refuses a guest with 403 M_GUEST_ACCESS_FORBIDDEN where guests may not join, without a request to another server', async () => {
      const { resident, roomId, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      const registration = await residents.a.api('POST', '/_matrix/client/v3/register', {
        query: { kind: 'guest' },
        body: {},
      });
      const { user_id, device_id, access_token } = registration.body;
      const guest = new TestClient(residents.a, {
        userId: String(user_id),
        deviceId: String(device_id),
        token: String(access_token),
      });
      const requestCount = () => resident.requestsTo('make_join').length;
      const before = requestCount();
      const { status, body } = await guest.call('POST', `/join/${enc(roomId)}`, {});
      assert.deepEqual([status, body['errcode']], [403, 'M_GUEST_ACCESS_FORBIDDEN']);
      assert.equal(requestCount(), before);
      release();
      await members();
    });

    it('answers GET /state/m.room.member/{userId} when the membership is known, and other state at once', async () => {
      const { resident, path, charlie, join } = await residents.open();
      const release = resident.holdState();
      await join();
      assert.equal((await anna.do('GET', `${path}/state/m.room.member/${anna.id}`))['membership'], 'join');
      assert.ok((await anna.do('GET', `${path}/state/m.room.create`))['room_version']);
      const member = anna.do('GET', `${path}/state/m.room.member/${charlie}`);
      release();
      assert.equal((await member)['membership'], 'join');
    });

    it('lets users be kicked and banned when no server provides the members, and answers 504 to the unban of an unknown member', async () => {
      const { server, resident, path, charlie, derek, join } = await residents.open();
      const levels = { users: { [resident.room.creator]: 100, [anna.id]: 100 } };
      resident.setState('m.room.power_levels', levels);
      const unavailable = () => [403, { errcode: 'M_FORBIDDEN', error: 'Refused' }] as const;
      for (const endpoint of ['state_ids', 'state']) {
        server.on(`GET /_matrix/federation/v1/${endpoint}/`, unavailable);
      }
      await join();
      const changes = Promise.all([
        anna.call('POST', `${path}/kick`, { user_id: charlie }),
        anna.call('POST', `${path}/ban`, { user_id: derek }),
        anna.call('POST', `${path}/unban`, { user_id: `@other:${server.name}` }),
      ]);
      const [kick, ban, unban] = await residents.clock.skipping(membersTimeout, changes);
      assert.deepEqual(
        [kick.status, ban.status, unban.status],
        [200, 200, 504],
        kick.raw + ban.raw + unban.raw,
      );
      await until(() => resident.received.length === 2);
      assert.equal((await anna.call('POST', `${path}/unban`, { user_id: derek })).status, 200);
    });

    it('refuses joins and knocks of other servers with 404 M_NOT_FOUND until the members are known', async () => {
      const { resident, roomId, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      const near = await residents.several.scripted(`near${residents.count}.test`);
      const user = `@visitor:near${residents.count}.test`;
      const v1 = '/_matrix/federation/v1';
      const v2 = '/_matrix/federation/v2';
      for (const membership of ['join', 'knock']) {
        const { event } = resident.room.build({
          type: 'm.room.member',
          content: { membership },
          stateKey: user,
          sender: user,
        });
        const make = `${v1}/make_${membership}/${enc(roomId)}/${enc(user)}?ver=11`;
        const version = membership === 'join' ? v2 : v1;
        const send = `${version}/send_${membership}/${enc(roomId)}/${enc(event.eventId)}`;
        for (const answer of [
          await near.request('a.test', 'GET', make),
          await near.request('a.test', 'PUT', send, event.pdu),
        ]) {
          assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_NOT_FOUND'], membership);
        }
      }
      release();
      await members();
    });

    it('accepts a local alias and a new display name, and the user directory has the members of the room once they are known', async () => {
      const { resident, roomId, path, charlie, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      const alias = `#partial${residents.count}:a.test`;
      await anna.do('PUT', `/directory/room/${enc(alias)}`, { room_id: roomId });
      const aliasResponse = await anna.do('GET', `/directory/room/${enc(alias)}`);
      assert.equal(aliasResponse['room_id'], roomId);
      assert.ok((aliasResponse['servers'] as string[]).includes(resident.server.name));
      const name = `Anna ${residents.count}`;
      await anna.do('PUT', `/profile/${enc(anna.id)}/displayname`, { displayname: name });
      await until(() => resident.received.some(({ content }) => content['displayname'] === name));
      assert.equal(
        (await anna.do('GET', `${path}/state/m.room.member/${enc(anna.id)}`))['displayname'],
        name,
      );
      release();
      assert.ok((await members()).includes(charlie));
      assert.equal(
        (await anna.do('GET', `${path}/state/m.room.member/${enc(anna.id)}`))['displayname'],
        name,
      );
      await until(async () => {
        const { results } = await anna.do('POST', '/user_directory/search', { search_term: charlie });
        return (results as { user_id: string }[]).some(({ user_id: userId }) => userId === charlie);
      });
    });

    it('counts the members of the room in summaries correctly when local users join and leave before the members are known', async () => {
      const { resident, roomId, join, members } = await residents.open();
      const path = `/_matrix/client/v1/room_summary/${enc(roomId)}`;
      const count = async () =>
        (await residents.a.api('GET', path, { token: anna.token })).body['num_joined_members'];
      const release = resident.holdState();
      await join();
      const bea = await residents.a.registerClient(`bea${residents.count}`);
      const cleo = await residents.a.registerClient(`cleo${residents.count}`);
      for (const user of [bea, cleo]) await join(user);
      await cleo.do('POST', `/rooms/${enc(roomId)}/leave`, {});
      release();
      assert.equal((await members()).length, 5);
      await until(async () => (await count()) === 5, 'a count of five members');
    });

    it('an administrator deletes the room, which ends the requests for its members, and a user can join the room again', async () => {
      const { resident, roomId, path, charlie, derek, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      const admin = await registerAdmin(residents.a);
      const deletion = { token: admin.token, body: { purge: true } };
      const deleted = await residents.a.api('DELETE', `/_synapse/admin/v1/rooms/${enc(roomId)}`, deletion);
      assert.equal(deleted.status, 200, deleted.raw);
      const joinedRooms = (await anna.do('GET', '/joined_rooms'))['joined_rooms'] as string[];
      assert.ok(!joinedRooms.includes(roomId));
      assert.equal((await anna.call('GET', `${path}/state`)).status, 403);
      const requestsBefore = resident.server.receivedRequests.filter(({ path: to }) =>
        to.includes('state_ids'),
      ).length;
      release();
      // The deleted room causes no more requests while another room, of another server, is completed.
      const next = await residents.open();
      await next.join();
      assert.ok((await next.members()).includes(next.charlie));
      const requestsAfter = resident.server.receivedRequests.filter(({ path: to }) =>
        to.includes('state_ids'),
      ).length;
      assert.equal(requestsAfter, requestsBefore);
      const details = await residents.a.api('GET', `/_synapse/admin/v1/rooms/${enc(roomId)}`, {
        token: admin.token,
      });
      assert.equal(details.status, 404, details.raw);
      // A user can join the deleted room again. Its resident server has accepted the leave of the deletion.
      const isLeave = ({ sender, content }: RoomEvent) =>
        sender === anna.id && content['membership'] === 'leave';
      await until(() => resident.received.some(isLeave));
      const leaveOfDeletion = resident.received.find(isLeave)!;
      resident.accept(leaveOfDeletion);
      await join();
      assert.ok(resident.joins.at(-1)!.authEventIds.includes(leaveOfDeletion.eventId));
      assert.deepEqual(await members(), [anna.id, charlie, resident.room.creator, derek].sort());
    });
  });
});
