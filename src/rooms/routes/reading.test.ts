import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { enc, type TestClient } from '../../../test/support/users/test-client.ts';
import { assertRefused, roomOfAnnaAndBen, ServerOfThreeUsers } from './test/three-users.ts';

interface Page {
  readonly chunk: readonly { readonly event_id: string; readonly type: string }[];
  readonly end?: string;
}

for (const database of selectedDatabases(import.meta.url)) {
  describe(`reading rooms, on ${database}`, () => {
    const users = new ServerOfThreeUsers(database);

    const messages = async (user: TestClient, roomId: string, query: Record<string, string | number>) =>
      (await user.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query)) as unknown as Page;

    it('returns messages in forward order when dir is absent', async () => {
      const { anna } = users;
      const roomId = await roomOfAnnaAndBen(users);
      const idsOf = async (query: Record<string, string | number>) =>
        (await messages(anna, roomId, { limit: 2, ...query })).chunk.map(({ event_id }) => event_id);
      assert.deepEqual(await idsOf({}), await idsOf({ dir: 'f' }));
      assert.notDeepEqual(await idsOf({}), await idsOf({ dir: 'b' }));
    });

    it('GET /timestamp_to_event searches forward when dir is absent', async () => {
      const { anna } = users;
      const roomId = await roomOfAnnaAndBen(users);
      const find = (query: object) =>
        users.server.api('GET', `/_matrix/client/v1/rooms/${enc(roomId)}/timestamp_to_event`, {
          token: anna.token,
          query: { ts: 1, ...query },
        });
      const [withoutDir, forwards] = [await find({}), await find({ dir: 'f' })];
      assert.equal(withoutDir.status, 200, withoutDir.raw);
      assert.deepEqual(withoutDir.body, forwards.body);
    });

    it('answers requests for a forgotten room with 403 M_FORBIDDEN, also malformed requests', async () => {
      const { ben, anna } = users;
      const roomId = await roomOfAnnaAndBen(users);
      const eventId = await anna.say(roomId, 'x');
      const room = `/_matrix/client/v3/rooms/${enc(roomId)}`;
      const malformed = [
        `${room}/messages?dir=x`,
        `${room}/messages?dir=b&limit=x`,
        `${room}/messages?dir=b&from=x`,
        `${room}/messages?dir=b&filter=x`,
        `${room}/context/${enc(eventId)}?limit=x`,
        `${room}/context/${enc(eventId)}?filter=x`,
        `${room}/members?at=x`,
        `${room}/state/m.room.topic/?format=x`,
        `/_matrix/client/v1/rooms/${enc(roomId)}/timestamp_to_event?ts=x`,
        `/_matrix/client/v1/rooms/${enc(roomId)}/threads?limit=0`,
        `/_matrix/client/v1/rooms/${enc(roomId)}/threads?from=x`,
      ];
      for (const path of malformed) {
        const { status } = await ben.request('GET', path, undefined);
        assert.equal(status, 400, path);
      }
      await ben.leave(roomId);
      await ben.membership('forget', roomId);
      for (const path of [...malformed, `${room}/messages`, `${room}/messages?limit=1`]) {
        const { status, body } = await ben.request('GET', path, undefined);
        assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN'], path);
      }
    });

    it('returns an end token with each page of /messages that has events, in both directions', async () => {
      const { anna, ben } = users;
      const roomId = await roomOfAnnaAndBen(users);
      await ben.leave(roomId);
      for (const user of [anna, ben]) {
        for (const dir of ['f', 'b']) {
          const page = await messages(user, roomId, { dir, limit: 100 });
          assert.ok(page.chunk.length > 0);
          assert.ok(page.end, `${user.id} ${dir}`);
          const next = await messages(user, roomId, { dir, from: page.end });
          assert.deepEqual([next.chunk, next.end], [[], undefined]);
        }
      }
    });

    it('returns pages of /messages up to the token `to`: the page after the last of these events is empty and has no end token, in both directions', async () => {
      const { anna } = users;
      const roomId = await anna.createRoom();
      for (const body of ['one', 'two', 'three', 'four']) await anna.say(roomId, body);
      const page = (query: object) =>
        anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, { limit: 2, ...query });
      const newest = await page({ dir: 'b' });
      const older = await page({ dir: 'b', from: newest['end'] });
      for (const [dir, from, to] of [
        ['b', newest['start'], older['end']],
        ['f', older['end'], newest['start']],
      ]) {
        const tokens = [from];
        const pages = [];
        while (tokens[pages.length] !== undefined && pages.length < 4) {
          pages.push(await page({ dir, from: tokens[pages.length], to }));
          tokens.push(pages.at(-1)?.['end']);
        }
        assert.deepEqual(
          pages.map(({ chunk }) => (chunk as object[]).length),
          [2, 2, 0],
        );
        assert.equal(pages[2]?.['end'], undefined);
      }
    });

    it('returns the members at the prev_batch of a timeline, for joined and left rooms: all if it is empty or limited, none if it begins with the room', async () => {
      const { anna, ben, cleo } = users;
      const roomId = await roomOfAnnaAndBen(users);
      await cleo.join(roomId);
      const messageId = await anna.say(roomId, 'x');
      const membersAt = async (user: TestClient, at: string | undefined) => {
        const { chunk } = await user.do('GET', `/rooms/${enc(roomId)}/members`, undefined, { at: at ?? '' });
        return (chunk as { state_key: string }[]).map(({ state_key }) => state_key).sort();
      };
      const first = await ben.sync(undefined, { filter: { room: { timeline: { limit: 1 } } } });
      assert.deepEqual(await membersAt(ben, first.rooms?.join?.[roomId]?.timeline.prev_batch), [
        anna.id,
        ben.id,
        cleo.id,
      ]);
      const withLimit0 = await ben.sync(undefined, { filter: { room: { timeline: { limit: 0 } } } });
      const end = withLimit0.rooms?.join?.[roomId]?.timeline.prev_batch;
      assert.deepEqual(await membersAt(ben, end), [anna.id, ben.id, cleo.id]);
      const last = await messages(ben, roomId, { dir: 'b', from: end ?? '', limit: 1 });
      assert.equal(last.chunk[0]?.event_id, messageId);
      const withLimit50 = await ben.sync(undefined, { filter: { room: { timeline: { limit: 50 } } } });
      assert.deepEqual(await membersAt(ben, withLimit50.rooms?.join?.[roomId]?.timeline.prev_batch), []);
      await ben.leave(roomId);
      for (const limit of [0, 1, 50]) {
        const filter = { room: { include_leave: true, timeline: { limit } } };
        const leftRoom = (await ben.sync(undefined, { filter })).rooms?.leave?.[roomId];
        assert.deepEqual(
          await membersAt(ben, leftRoom?.timeline.prev_batch),
          limit === 50 ? [] : [anna.id, ben.id, cleo.id],
          `limit ${limit}`,
        );
      }
      await assertRefused(
        ben,
        'GET',
        `/rooms/${enc(roomId)}/members?at=x`,
        undefined,
        400,
        'M_INVALID_PARAM',
      );
    });

    it('returns no events of rooms that the filter excludes, and refuses a negative limit', async () => {
      const { anna } = users;
      const roomId = await roomOfAnnaAndBen(users);
      const eventId = await anna.say(roomId, 'hello');
      const read = async (filter: object) => {
        const query = { filter: JSON.stringify(filter) };
        const page = await anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, {
          ...query,
          dir: 'b',
        });
        const context = await anna.do(
          'GET',
          `/rooms/${enc(roomId)}/context/${enc(eventId)}`,
          undefined,
          query,
        );
        return [page['chunk'], context['events_before']].map((events) => (events as unknown[]).length > 0);
      };
      assert.deepEqual(await read({ not_rooms: [roomId] }), [false, false]);
      assert.deepEqual(await read({ rooms: ['!another:test'] }), [false, false]);
      assert.deepEqual(await read({ rooms: [roomId] }), [true, true]);
      for (const path of ['messages?dir=b&limit=-1', `context/${enc(eventId)}?limit=-1`]) {
        await assertRefused(anna, 'GET', `/rooms/${enc(roomId)}/${path}`, undefined, 400, 'M_INVALID_PARAM');
      }
    });

    it('returns avatar_url and display_name of all joined members from /joined_members, null where they are unset', async () => {
      const { anna, ben, cleo } = users;
      const roomId = await roomOfAnnaAndBen(users);
      await cleo.join(roomId);
      const setProfile = (user: typeof ben, profile: object) =>
        user.setState(roomId, 'm.room.member', { membership: 'join', ...profile }, user.id);
      await setProfile(ben, { displayname: 'Ben', avatar_url: 'mxc://test/ben' });
      await setProfile(cleo, { displayname: null, avatar_url: 5 });
      await setProfile(anna, { displayname: 'Anna' });
      const { joined } = await anna.do('GET', `/rooms/${enc(roomId)}/joined_members`);
      assert.deepEqual(joined, {
        [anna.id]: { display_name: 'Anna', avatar_url: null },
        [ben.id]: { display_name: 'Ben', avatar_url: 'mxc://test/ben' },
        [cleo.id]: { display_name: null, avatar_url: null },
      });
    });
  });
}
