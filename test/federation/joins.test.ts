import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createLogger } from '../../src/kernel/observability/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const versions = Array.from({ length: 12 }, (_, index) => String(index + 1));

/** Returns the joined members of a room, as a user sees them. */
async function membersOf(user: TestClient, roomId: string): Promise<string[]> {
  const { joined } = await user.do('GET', `/rooms/${enc(roomId)}/joined_members`);
  return Object.keys(joined as object).sort();
}

const join = (user: TestClient, room: string, via: readonly string[] = []) =>
  user.call('POST', `/join/${enc(room)}`, {}, { via });

async function assertError(answer: ReturnType<TestClient['call']>, status: number, errcode: string) {
  const { status: actual, body, raw } = await answer;
  assert.deepEqual([actual, body['errcode']], [status, errcode], raw);
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a join to a room of another server', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let c: FederatedServer;
    let anna: TestClient;
    let ben: TestClient;
    /** The paths of requests that begin a join handshake, as the servers log them. */
    const handshakes: string[] = [];
    const handshakesOf = (user: TestClient, roomId: string) =>
      handshakes.filter((path) => path.includes(`/make_join/${roomId}/${user.id}`)).length;
    before(async () => {
      const write = (line: string) => {
        const { url } = JSON.parse(line) as { url?: string };
        if (url?.includes('/make_join/')) handshakes.push(decodeURIComponent(url));
      };
      const log = createLogger({ level: 'debug', destination: { write } });
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test', 'c.test'], { log });
      several = opened.several;
      [a, b, c] = opened.servers;
      anna = await a.registerClient('anna');
      ben = await b.registerClient('ben');
    });
    after(() => several.stop());

    for (const version of versions) {
      it(`joins a remote room of version ${version}`, async () => {
        const roomId = await anna.createRoom({
          preset: 'public_chat',
          room_version: version,
          name: `Version ${version}`,
        });
        const syncBefore = await ben.sync();
        const { status, body, raw } = await join(ben, roomId, ['a.test']);
        assert.equal(status, 200, raw);
        assert.equal(body['room_id'], roomId);
        assert.deepEqual(await membersOf(ben, roomId), [anna.id, ben.id]);
        assert.deepEqual(await membersOf(anna, roomId), [anna.id, ben.id]);
        const name = await ben.do('GET', `/rooms/${enc(roomId)}/state/m.room.name`);
        assert.equal(name['name'], `Version ${version}`);
        const { rooms } = await ben.sync(syncBefore.next_batch);
        const events = rooms?.join?.[roomId]?.state?.events ?? [];
        const timeline = rooms?.join?.[roomId]?.timeline.events ?? [];
        const types = [...events, ...timeline].map(({ type }) => type);
        for (const type of ['m.room.create', 'm.room.member', 'm.room.name']) assert.ok(types.includes(type));
        assert.ok(await ben.say(roomId, 'hello'));
      });
    }

    it('joins by an alias of the other server', async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat', room_alias_name: 'lounge' });
      const { body, raw } = await join(ben, '#lounge:a.test');
      assert.equal(body['room_id'], roomId, raw);
      await assertError(join(ben, '#nowhere:a.test'), 404, 'M_NOT_FOUND');
    });

    it('fails a join with the error of the other server, and with 404 when no server is known', async () => {
      const privateRoom = await anna.createRoom({ preset: 'private_chat' });
      await assertError(join(ben, privateRoom, ['a.test']), 403, 'M_FORBIDDEN');
      await assertError(join(ben, '!unknown:a.test', ['a.test']), 404, 'M_NOT_FOUND');
      await assertError(join(ben, `!${'A'.repeat(43)}`), 404, 'M_NOT_FOUND');
      const roomWithBan = await anna.createRoom();
      await anna.do('POST', `/rooms/${enc(roomWithBan)}/ban`, { user_id: ben.id });
      await assertError(join(ben, roomWithBan, ['a.test']), 403, 'M_FORBIDDEN');
    });

    it('joins through the next server when one fails', async () => {
      const roomId = await anna.createRoom();
      const via = ['nowhere.test', 'c.test', 'not a server', 'a.test'];
      const { status, raw } = await join(ben, roomId, via);
      assert.equal(status, 200, raw);
    });

    it('fails a join with 502 when no server is reachable', async () => {
      const roomId = await anna.createRoom();
      a.disconnect();
      await assertError(join(ben, roomId, ['a.test']), 502, 'M_UNKNOWN');
      a.reconnect();
      const { status, raw } = await join(ben, roomId, ['a.test']);
      assert.equal(status, 200, raw);
    });

    it('runs one join handshake for concurrent joins of a user, and none for other users once the members of the room are known', async () => {
      const bea = await b.registerClient(`bea${kind}`);
      const roomId = await anna.createRoom();
      const answers = await Promise.all([
        join(ben, roomId, ['a.test']),
        join(ben, roomId, ['a.test']),
        join(bea, roomId, ['a.test']),
      ]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200],
      );
      // `membersOf` waits for the members. Until they are known, the other server decides whether a further user may join.
      assert.deepEqual(await membersOf(ben, roomId), [anna.id, bea.id, ben.id]);
      assert.deepEqual([handshakesOf(ben, roomId), handshakesOf(bea, roomId) <= 1], [1, true]);
      a.disconnect();
      const betty = await b.registerClient('betty');
      assert.equal((await join(betty, roomId)).status, 200);
      a.reconnect();
    });

    it('runs the join handshake again after all local users have left', async () => {
      const roomId = await anna.createRoom();
      assert.equal((await join(ben, roomId, ['a.test'])).status, 200);
      await ben.leave(roomId);
      await assertError(
        ben.call('GET', `/rooms/${enc(roomId)}/members`, undefined, { at: 'x' }),
        400,
        'M_INVALID_PARAM',
      );
      await anna.setState(roomId, 'm.room.topic', { topic: 'while you were away' });
      // The servers that were in the room receive no requests unless the user names them.
      await assertError(join(ben, roomId), 404, 'M_NOT_FOUND');
      const { status, raw } = await join(ben, roomId, ['a.test']);
      assert.equal(status, 200, raw);
      const topic = await ben.do('GET', `/rooms/${enc(roomId)}/state/m.room.topic`);
      assert.equal(topic['topic'], 'while you were away');
      assert.deepEqual(await membersOf(ben, roomId), [anna.id, ben.id]);
    });

    it('GET /members at the prev_batch of the first sync with a joined room excludes the user who joined', async () => {
      const cleo = await c.registerClient('cleo');
      const roomId = await anna.createRoom();
      assert.equal((await join(cleo, roomId, ['a.test'])).status, 200);
      // Sync omits the room until its members are known.
      await until(async () => (await cleo.sync()).rooms?.join?.[roomId] !== undefined);
      const room = (await cleo.sync()).rooms!.join![roomId]!;
      assert.equal(room.timeline.events.length, 1);
      const at = room.timeline.prev_batch ?? '';
      const { chunk } = await cleo.do('GET', `/rooms/${enc(roomId)}/members`, undefined, { at });
      assert.deepEqual(
        (chunk as { state_key: string }[]).map(({ state_key }) => state_key),
        [anna.id],
      );
    });

    it('puts the reason of the request and the profile of the user into the membership event of a join', async () => {
      await ben.do('PUT', `/profile/${enc(ben.id)}/displayname`, { displayname: 'Ben' });
      const roomId = await anna.createRoom();
      await ben.do('POST', `/join/${enc(roomId)}`, { reason: 'curious' }, { server_name: 'a.test' });
      const member = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(ben.id)}`);
      assert.deepEqual([member['displayname'], member['reason']], ['Ben', 'curious']);
    });

    describe('a join to a restricted room of another server', () => {
      const restricted = (allowedRoom: string) => ({
        preset: 'private_chat',
        room_version: '10',
        initial_state: [
          {
            type: 'm.room.join_rules',
            content: {
              join_rule: 'restricted',
              allow: [{ type: 'm.room_membership', room_id: allowedRoom }],
            },
          },
        ],
      });

      it('lets members of the allowed rooms join a restricted room, with the signature of the other server', async () => {
        const space = await anna.createRoom();
        const roomId = await anna.createRoom(restricted(space));
        await assertError(join(ben, roomId, ['a.test']), 403, 'M_FORBIDDEN');
        assert.equal((await join(ben, space, ['a.test'])).status, 200);
        const { status, raw } = await join(ben, roomId, ['a.test']);
        assert.equal(status, 200, raw);
        for (const user of [anna, ben]) {
          const path = `/rooms/${enc(roomId)}/state/m.room.member/${enc(ben.id)}`;
          const member = await user.do('GET', path);
          assert.equal(member['join_authorised_via_users_server'], anna.id);
        }
      });

      it('fails a restricted join with M_UNABLE_TO_AUTHORISE_JOIN when the other server is not in the allowed rooms', async () => {
        const cleo = await c.registerClient(`cleo${kind}`);
        const roomOfCleo = await cleo.createRoom();
        const roomId = await anna.createRoom(restricted(roomOfCleo));
        await assertError(join(ben, roomId, ['a.test']), 400, 'M_UNABLE_TO_AUTHORISE_JOIN');
      });

      it('joins a restricted room through another server when no local user may authorize it', async () => {
        const space = await anna.createRoom();
        const roomId = await anna.createRoom(restricted(space));
        await anna.setState(roomId, 'm.room.power_levels', { users: { [anna.id]: 100 }, invite: 50 });
        assert.equal((await join(ben, space, ['a.test'])).status, 200);
        assert.equal((await join(ben, roomId, ['a.test'])).status, 200);
        const boris = await b.registerClient(`boris${kind}`);
        await assertError(join(boris, roomId), 403, 'M_FORBIDDEN');
        assert.equal((await join(boris, space)).status, 200);
        await until(async () => (await membersOf(anna, space)).includes(boris.id));
        const { status, raw } = await join(boris, roomId);
        assert.equal(status, 200, raw);
        assert.deepEqual(await membersOf(anna, roomId), [anna.id, ben.id, boris.id].sort());
      });
    });
  });
});
