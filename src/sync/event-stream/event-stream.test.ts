import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { type ClientEventJson, enc, TestClient } from '../../../test/support/users/test-client.ts';

interface Chunk {
  readonly start: string;
  readonly end: string;
  readonly chunk: readonly (ClientEventJson & { readonly room_id: string })[];
}

interface RoomInfoJson {
  readonly room_id: string;
  readonly membership?: string;
  readonly invite?: ClientEventJson;
  readonly messages?: { readonly start?: string; readonly end: string; readonly chunk: ClientEventJson[] };
  readonly state?: readonly ClientEventJson[];
  readonly visibility?: string;
  readonly account_data?: readonly { type: string; content: unknown }[];
}

forSelectedDatabases(import.meta.url, (open) => {
  let server: TestServer;
  let anna: TestClient;
  let ben: TestClient;
  before(async () => {
    server = await startTestServer({
      database: open.kind,
      config: { directory: { room_list_publication_rules: [{ action: 'allow' }] } },
    });
    [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
  });
  after(() => server.stop());

  const bodies = (events: readonly { content: Readonly<Record<string, unknown>> }[]) =>
    events.map(({ content }) => content['body']).filter((body) => body !== undefined);
  const events = async (person: TestClient, query: Record<string, string | number>) =>
    (await person.do('GET', '/events', undefined, query)) as unknown as Chunk;
  const roomInfo = async (person: TestClient, roomId: string, limit = 10) =>
    (await person.do('GET', `/rooms/${enc(roomId)}/initialSync`, undefined, {
      limit,
    })) as unknown as RoomInfoJson;
  const worldReadable = async () => {
    const room = await anna.createRoom();
    await anna.setState(room, 'm.room.history_visibility', { history_visibility: 'world_readable' });
    return room;
  };

  describe('GET /rooms/{roomId}/initialSync and GET /events of one room', () => {
    it('GET /rooms/{roomId}/initialSync returns a world-readable room, and GET /events then returns its new events', async () => {
      const room = await worldReadable();
      for (const body of ['one', 'two', 'three']) await anna.say(room, body);
      const info = await roomInfo(ben, room, 2);
      assert.deepEqual(
        [info.room_id, info.membership, info.visibility, bodies(info.messages!.chunk)],
        [room, undefined, 'private', ['two', 'three']],
      );
      assert.ok(info.state?.some(({ type }) => type === 'm.room.create'));
      const page = await ben.do('GET', `/rooms/${enc(room)}/messages`, undefined, {
        dir: 'b',
        from: info.messages!.start!,
        limit: 1,
      });
      assert.deepEqual(bodies(page['chunk'] as []), ['one']);

      const { end: from } = info.messages!;
      const waiting = events(ben, { room_id: room, from, timeout: 100_000 });
      await anna.say(room, 'four');
      const next = await waiting;
      assert.deepEqual([bodies(next.chunk), next.chunk[0]!.room_id], [['four'], room]);
      assert.deepEqual((await events(ben, { room_id: room, from: next.end })).chunk, []);
      assert.deepEqual((await events(ben, { room_id: room, timeout: 1 })).chunk, []);
    });

    it('GET /rooms/{roomId}/initialSync and GET /events of one room answer 403 M_FORBIDDEN to users who may not read the room', async () => {
      const room = await worldReadable();
      const { end: from } = (await roomInfo(ben, room)).messages!;
      await anna.say(room, 'for all');
      await anna.setState(room, 'm.room.history_visibility', { history_visibility: 'shared' });
      await anna.say(room, 'for members');
      for (const path of [`/rooms/${enc(room)}/initialSync`, `/events?room_id=${enc(room)}&from=${from}`]) {
        const { status, body } = await ben.call('GET', path);
        assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN'], path);
      }
      await anna.setState(room, 'm.room.history_visibility', { history_visibility: 'world_readable' });
      await anna.say(room, 'for all again');
      const { chunk } = await events(ben, { room_id: room, from });
      assert.deepEqual(bodies(chunk), ['for all', 'for all again']);
      const unknown = await ben.call('GET', `/events?room_id=${enc('!unknown:test')}`);
      assert.deepEqual([unknown.status, unknown.body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('GET /events of one room returns the same position after a timeout, and 403 M_FORBIDDEN when the user may not read the room any more', async () => {
      const room = await worldReadable();
      const { end: from } = (await roomInfo(ben, room)).messages!;
      const nothing = await events(ben, { room_id: room, from, timeout: 1 });
      assert.deepEqual([nothing.chunk, nothing.end], [[], from]);
      const waiting = ben.call('GET', `/events?room_id=${enc(room)}&from=${from}&timeout=100000`);
      await anna.setState(room, 'm.room.history_visibility', { history_visibility: 'shared' });
      const { status, body } = await waiting;
      assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('GET /events of one room returns at most 100 events per response', async () => {
      const room = await worldReadable();
      const { end } = (await roomInfo(ben, room)).messages!;
      const sent = Array.from({ length: 130 }, (_, index) => `message ${index}`);
      for (const body of sent) await anna.say(room, body);
      const first = await events(ben, { room_id: room, from: end });
      const second = await events(ben, { room_id: room, from: first.end });
      assert.equal(first.chunk.length, 100);
      assert.deepEqual([...bodies(first.chunk), ...bodies(second.chunk)], sent);
    });
  });

  describe('GET /initialSync and GET /events', () => {
    it('GET /initialSync returns the rooms of a user, left rooms only with archived=true, and GET /events then returns new events of joined rooms', async () => {
      const [cleo, dora] = [
        await TestClient.register(server, 'cleo'),
        await TestClient.register(server, 'dora'),
      ];
      const [joined, published] = [await cleo.createRoom(), await cleo.createRoom({ visibility: 'public' })];
      const leftRoomId = await dora.createRoom();
      const invited = await dora.createRoom({ preset: 'private_chat', invite: [cleo.id] });
      await cleo.join(leftRoomId);
      await dora.say(leftRoomId, 'while Cleo is here');
      await cleo.leave(leftRoomId);
      await dora.say(leftRoomId, 'when Cleo is gone');
      await cleo.say(joined, 'hello');
      const tags = `/user/${enc(cleo.id)}/rooms/${enc(joined)}/tags/u.work`;
      await cleo.do('PUT', tags, {});
      await cleo.do('PUT', `/user/${enc(cleo.id)}/account_data/org.example`, { a: 1 });

      const all = await cleo.do('GET', '/initialSync');
      const rooms = new Map((all['rooms'] as RoomInfoJson[]).map((room) => [room.room_id, room]));
      assert.deepEqual([...rooms.keys()].sort(), [joined, published, invited].sort());
      assert.deepEqual(bodies(rooms.get(joined)!.messages!.chunk), ['hello']);
      assert.deepEqual(rooms.get(joined)!.account_data, [
        { type: 'm.tag', content: { tags: { 'u.work': {} } } },
      ]);
      assert.equal(rooms.get(published)!.visibility, 'public');
      assert.deepEqual(
        [rooms.get(invited)!.membership, rooms.get(invited)!.invite?.sender],
        ['invite', dora.id],
      );
      assert.deepEqual(all['account_data'], [{ type: 'org.example', content: { a: 1 } }]);
      const archived = await cleo.do('GET', '/initialSync', undefined, { archived: true });
      const leftRoom = (archived['rooms'] as RoomInfoJson[]).find(({ room_id: id }) => id === leftRoomId);
      assert.deepEqual(
        [leftRoom?.membership, bodies(leftRoom!.messages!.chunk)],
        ['leave', ['while Cleo is here']],
      );

      const waiting = events(cleo, { from: String(all['end']), timeout: 100_000 });
      await cleo.say(published, 'later');
      assert.deepEqual(bodies((await waiting).chunk), ['later']);
      await cleo.say(joined, 'and later');
      const both = await events(cleo, { from: String(all['end']) });
      assert.deepEqual(bodies(both.chunk), ['later', 'and later']);
      for (const from of ['nonsense', 's1_999999999']) {
        const { status, body } = await cleo.call('GET', '/events', undefined, { from });
        assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM']);
      }
    });

    it('GET /initialSync and GET /events return receipts, typing, presence, tags and account data', async () => {
      const [gina, hugo] = [
        await TestClient.register(server, 'gina'),
        await TestClient.register(server, 'hugo'),
      ];
      const room = await gina.createRoom();
      await hugo.join(room);
      const eventId = await gina.say(room, 'hello');
      let from = (await events(gina, {})).end;
      const next = async (act: () => Promise<unknown>) => {
        const waiting = events(gina, { from, timeout: 100_000 });
        await act();
        const { chunk, end } = (await waiting) as unknown as { end: string; chunk: object[] };
        from = end;
        return chunk;
      };
      const receipt = `/rooms/${enc(room)}/receipt/m.read/${enc(eventId)}`;
      const [read] = (await next(() => hugo.do('POST', receipt, {}))) as {
        content: Record<string, Record<string, object>>;
      }[];
      assert.deepEqual(
        [read!.content[eventId]?.['m.read'] && Object.keys(read!.content[eventId]!['m.read'])],
        [[hugo.id]],
      );
      assert.deepEqual({ ...read, content: {} }, { type: 'm.receipt', room_id: room, content: {} });
      const typing = `/rooms/${enc(room)}/typing/${enc(hugo.id)}`;
      assert.deepEqual(await next(() => hugo.do('PUT', typing, { typing: true, timeout: 30_000 })), [
        { type: 'm.typing', room_id: room, content: { user_ids: [hugo.id] } },
      ]);
      const note = { type: 'org.example.note', content: { n: 1 } };
      assert.deepEqual(
        await next(() => gina.do('PUT', `/user/${enc(gina.id)}/account_data/${note.type}`, note.content)),
        [note],
      );
      const roomPath = `/user/${enc(gina.id)}/rooms/${enc(room)}`;
      assert.deepEqual(
        await next(() => gina.do('PUT', `${roomPath}/account_data/${note.type}`, note.content)),
        [{ ...note, room_id: room }],
      );
      assert.deepEqual(await next(() => gina.do('PUT', `${roomPath}/tags/u.work`, {})), [
        { type: 'm.tag', room_id: room, content: { tags: { 'u.work': {} } } },
      ]);
      const status = `/presence/${enc(hugo.id)}/status`;
      const statuses = (await next(() =>
        hugo.do('PUT', status, { presence: 'online', status_msg: 'here' }),
      )) as { type: string; sender: string; content: { status_msg: string } }[];
      assert.deepEqual(
        statuses.map(({ type, sender, content }) => [type, sender, content.status_msg]),
        [['m.presence', hugo.id, 'here']],
      );
      await server.restart();
      const afterRestart = (await events(gina, { from })).chunk;
      assert.ok(afterRestart.every(({ type }) => type === 'm.presence'));
      for (const path of ['/initialSync', `/rooms/${enc(room)}/initialSync`]) {
        const initial = (await gina.do('GET', path)) as unknown as {
          receipts: { type: string; room_id: string; content: object }[];
          presence: { sender: string }[];
          rooms?: RoomInfoJson[];
        } & RoomInfoJson;
        assert.deepEqual(
          initial.receipts.map(({ type, room_id, content }) => [type, room_id, Object.keys(content)]),
          [['m.receipt', room, [eventId]]],
        );
        assert.ok(initial.presence.some(({ sender }) => sender === hugo.id));
        const info = initial.rooms?.[0] ?? initial;
        assert.deepEqual(info.account_data?.map(({ type }) => type).sort(), ['m.tag', 'org.example.note']);
      }
    });

    it('GET /initialSync and GET /rooms/{roomId}/initialSync answer 400 M_INVALID_PARAM to limits that are negative or no integers, and return the token messages.start with every valid limit', async () => {
      const room = await anna.createRoom();
      for (const path of ['/initialSync', `/rooms/${enc(room)}/initialSync`]) {
        for (const limit of ['-1', 'many', '1.5']) {
          const { status, body } = await anna.call('GET', path, undefined, { limit });
          assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM'], `${path} ${limit}`);
        }
      }
      for (const limit of [0, 1, 100]) {
        const all = await anna.do('GET', '/initialSync', undefined, { limit });
        const inAll = (all['rooms'] as RoomInfoJson[]).find(({ room_id: id }) => id === room);
        for (const { messages } of [inAll!, await roomInfo(anna, room, limit)]) {
          assert.equal(messages!.chunk.length > 0, limit > 0, `limit ${limit}`);
          assert.equal(typeof messages!.start, 'string', `limit ${limit}`);
        }
      }
    });

    it('GET /events returns invites and leave events of the user', async () => {
      const [emil, fay] = [
        await TestClient.register(server, 'emil'),
        await TestClient.register(server, 'fay'),
      ];
      const membershipsIn = ({ chunk }: Chunk) =>
        chunk
          .filter(({ state_key }) => state_key === emil.id)
          .map(({ room_id, content }) => [room_id, content['membership']]);
      const [room, ignored] = [await fay.createRoom(), await fay.createRoom()];
      await emil.join(room);
      const { end: from } = await events(emil, {});
      const waiting = events(emil, { from, timeout: 100_000 });
      const invited = await fay.createRoom({ preset: 'private_chat', invite: [emil.id] });
      const answer = await waiting;
      assert.deepEqual(membershipsIn(answer), [[invited, 'invite']]);
      await fay.say(room, 'last words');
      await fay.membership('kick', room, emil);
      await fay.say(room, 'behind his back');
      const kicked = await events(emil, { from: answer.end, timeout: 100_000 });
      assert.deepEqual(bodies(kicked.chunk), ['last words']);
      assert.deepEqual(membershipsIn(kicked), [[room, 'leave']]);
      const path = `/user/${enc(emil.id)}/account_data/m.ignored_user_list`;
      await emil.do('PUT', path, { ignored_users: { [fay.id]: {} } });
      await fay.membership('invite', ignored, emil);
      const { chunk: rest } = await events(emil, { from: kicked.end });
      assert.deepEqual(
        rest.map(({ type }) => type),
        ['m.ignored_user_list'],
        'the invite is ignored',
      );
      await server.restart();
      const afterRestart = await events(emil, { from });
      assert.deepEqual(membershipsIn(afterRestart), [[room, 'leave']]);
    });

    it('GET /events/{eventId} returns the event to a user who may see it, and 404 M_NOT_FOUND to other users', async () => {
      const room = await anna.createRoom({ preset: 'private_chat' });
      const eventId = await anna.say(room, 'mine');
      assert.deepEqual(bodies([(await anna.do('GET', `/events/${enc(eventId)}`)) as never]), ['mine']);
      for (const id of [eventId, '$unknown']) {
        const { status, body } = await ben.call('GET', `/events/${enc(id)}`);
        assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
      }
    });
  });
});
