import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { enc, TestClient } from './support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer({ database: kind });
  });
  after(() => server.stop());

  let names = 0;
  const registerUsers = (...roles: string[]) =>
    Promise.all(roles.map((role) => TestClient.register(server, `${role}${names++}`)));
  const setAccountData = (client: TestClient, type: string, content: object) =>
    client.do('PUT', `/user/${enc(client.id)}/account_data/${type}`, content);
  const ignore = (client: TestClient, ...others: TestClient[]) =>
    setAccountData(client, 'm.ignored_user_list', {
      ignored_users: Object.fromEntries(others.map(({ id }) => [id, {}])),
    });
  const statusAndErrcodeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
    status,
    body['errcode'],
  ];
  const bodies = (events: readonly { content: Readonly<Record<string, unknown>> }[]) =>
    events.map(({ content }) => content['body']).filter((body) => body !== undefined);
  /** The rooms of a sliding sync response. */
  const sliding = async (client: TestClient) => {
    const lists = { all: { ranges: [[0, 99]], timeline_limit: 20, required_state: [] } };
    const path = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
    const { body, raw, status } = await client.request('POST', path, { lists });
    assert.equal(status, 200, raw);
    return body['rooms'] as Record<string, { timeline?: { content: Record<string, unknown> }[] }>;
  };

  describe('ignored users', () => {
    it('removes messages, but not state events, of ignored users from every response that shows events', async () => {
      const [anna, ben, cleo] = await registerUsers('anna', 'ben', 'cleo');
      const room = await anna!.createRoom();
      await ben!.join(room);
      await cleo!.join(room);
      await anna!.sync();
      await ben!.say(room, 'before');
      const since = (await anna!.sync()).next_batch;
      await ignore(anna!, ben!, anna!);
      const unwanted = await ben!.say(room, 'unwanted');
      await cleo!.say(room, 'wanted');
      await anna!.say(room, 'mine');
      await anna!.setState(room, 'm.room.power_levels', { users: { [ben!.id]: 50, [anna!.id]: 100 } });
      await ben!.setState(room, 'm.room.topic', { topic: 'by Ben' });

      const timelineOf = (sync: Awaited<ReturnType<TestClient['sync']>>) =>
        sync.rooms?.join?.[room]?.timeline.events ?? [];
      const next = timelineOf(await anna!.sync(since));
      assert.deepEqual(bodies(next), ['wanted', 'mine']);
      assert.ok(next.some(({ type, sender }) => type === 'm.room.topic' && sender === ben!.id));
      const whole = timelineOf(
        await anna!.sync(undefined, { filter: { room: { timeline: { limit: 50 } } } }),
      );
      assert.deepEqual(bodies(whole), ['wanted', 'mine']);
      assert.deepEqual(bodies((await sliding(anna!))[room]?.timeline ?? []), ['wanted', 'mine']);

      const getInRoom = (path: string, query = {}) =>
        anna!.call('GET', `/rooms/${enc(room)}${path}`, undefined, query);
      const page = await getInRoom('/messages', { dir: 'b', limit: 50 });
      assert.deepEqual(bodies(page.body['chunk'] as []), ['mine', 'wanted']);
      assert.deepEqual(statusAndErrcodeOf(await getInRoom(`/event/${enc(unwanted)}`)), [404, 'M_NOT_FOUND']);
      assert.deepEqual(statusAndErrcodeOf(await getInRoom(`/context/${enc(unwanted)}`)), [
        404,
        'M_NOT_FOUND',
      ]);
      const wantedEvent = whole.find(({ content }) => content['body'] === 'wanted')!;
      const context = await getInRoom(`/context/${enc(wantedEvent.event_id)}`, { limit: 4 });
      assert.equal(context.raw.includes('unwanted'), false);
      assert.equal((await anna!.call('GET', '/notifications')).raw.includes(unwanted), false);
      const search = { search_categories: { room_events: { search_term: 'unwanted' } } };
      assert.equal((await anna!.call('POST', '/search', search)).raw.includes(unwanted), false);
      const messagesForCleo = await cleo!.call('GET', `/rooms/${enc(room)}/messages`, undefined, {
        dir: 'b',
      });
      assert.ok(messagesForCleo.raw.includes(unwanted));

      await ignore(anna!);
      assert.ok(bodies(timelineOf(await anna!.sync())).includes('unwanted'));
    });

    it('removes typing notifications and read receipts of ignored users from classic and sliding sync', async () => {
      const [anna, ben, cleo] = await registerUsers('anna', 'ben', 'cleo');
      const room = await anna!.createRoom();
      await ben!.join(room);
      await cleo!.join(room);
      const messageId = await anna!.say(room, 'hello');
      await ignore(anna!, ben!);
      const since = (await anna!.sync()).next_batch;
      for (const user of [ben!, cleo!]) {
        await user.do('PUT', `/rooms/${enc(room)}/typing/${enc(user.id)}`, { typing: true, timeout: 60_000 });
        await user.do('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(messageId)}`, {});
      }
      const ephemeral = [
        { type: 'm.receipt', readers: [cleo!.id] },
        { type: 'm.typing', readers: [cleo!.id] },
      ];
      /** Returns the type of each ephemeral event, and the users in it. */
      const readersIn = (events: readonly { type: string; content: Record<string, unknown> }[] = []) =>
        events.map(({ type, content }) => {
          const read = content[messageId] as { 'm.read': object } | undefined;
          return { type, readers: read ? Object.keys(read['m.read']) : content['user_ids'] };
        });
      for (const sync of [await anna!.sync(since), await anna!.sync()]) {
        assert.deepEqual(readersIn(sync.rooms?.join?.[room]?.ephemeral.events), ephemeral);
      }
      const { body } = await anna!.request(
        'POST',
        '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync',
        {
          lists: { all: { ranges: [[0, 9]], timeline_limit: 20, required_state: [] } },
          extensions: { typing: { enabled: true }, receipts: { enabled: true } },
        },
      );
      const { receipts, typing } = body['extensions'] as Record<string, { rooms: Record<string, never> }>;
      assert.deepEqual(readersIn([receipts!.rooms[room]!, typing!.rooms[room]!]), ephemeral);
      const syncOfCleo = await cleo!.sync();
      assert.deepEqual(readersIn(syncOfCleo.rooms?.join?.[room]?.ephemeral.events).at(-1)?.readers, [
        ben!.id,
        cleo!.id,
      ]);
    });

    it('accepts invites from ignored users, and shows the invites once the users are not ignored', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const since = (await anna!.sync()).next_batch;
      await ignore(anna!, ben!);
      const room = await ben!.createRoom({ preset: 'private_chat' });
      await ben!.membership('invite', room, anna!);
      assert.equal((await anna!.sync(since)).rooms?.invite, undefined);
      assert.equal((await anna!.sync()).rooms?.invite, undefined);
      assert.deepEqual(await sliding(anna!), {});
      await ignore(anna!);
      assert.deepEqual(Object.keys((await anna!.sync()).rooms?.invite ?? {}), [room]);
      assert.deepEqual(Object.keys(await sliding(anna!)), [room]);
    });
  });

  describe('blocked invites', () => {
    const block = { default_action: 'block' };

    it('refuses blocked invites with 403 M_INVITE_BLOCKED at /invite, as state events and in createRoom', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      await setAccountData(anna!, 'm.invite_permission_config', block);
      const room = await ben!.createRoom();
      const invite = { user_id: anna!.id };
      const blockedError = [403, 'M_INVITE_BLOCKED'];
      assert.deepEqual(
        statusAndErrcodeOf(await ben!.call('POST', `/rooms/${enc(room)}/invite`, invite)),
        blockedError,
      );
      const state = `/rooms/${enc(room)}/state/m.room.member/${enc(anna!.id)}`;
      assert.deepEqual(
        statusAndErrcodeOf(await ben!.call('PUT', state, { membership: 'invite' })),
        blockedError,
      );
      assert.deepEqual(
        statusAndErrcodeOf(await ben!.call('POST', '/createRoom', { invite: [anna!.id] })),
        blockedError,
      );
      await anna!.join(room);
      await anna!.leave(room);
      await setAccountData(anna!, 'm.invite_permission_config', {});
      await ben!.membership('invite', room, anna!);
      assert.deepEqual(Object.keys((await anna!.sync()).rooms?.invite ?? {}), [room]);
    });

    it('hides invites that were received before the block', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const room = await ben!.createRoom({ preset: 'private_chat', invite: [anna!.id] });
      assert.deepEqual(Object.keys((await anna!.sync()).rooms?.invite ?? {}), [room]);
      await setAccountData(anna!, 'm.invite_permission_config', block);
      assert.equal((await anna!.sync()).rooms?.invite, undefined);
      assert.deepEqual(await sliding(anna!), {});
    });

    it('applies the allow, block and ignore lists of MSC4155 and the unstable type of MSC4380 to invites', async () => {
      const [anna, ben, cleo] = await registerUsers('anna', 'ben', 'cleo');
      await setAccountData(anna!, 'org.matrix.msc4155.invite_permission_config', {
        allowed_users: [cleo!.id],
        blocked_servers: ['te?t'],
      });
      const invite = async (inviter: TestClient) =>
        statusAndErrcodeOf(
          await inviter.call('POST', `/rooms/${enc(await inviter.createRoom())}/invite`, {
            user_id: anna!.id,
          }),
        );
      assert.deepEqual(await invite(ben!), [403, 'M_INVITE_BLOCKED']);
      assert.deepEqual(await invite(cleo!), [200, undefined]);
      await setAccountData(anna!, 'org.matrix.msc4155.invite_permission_config', { ignored_users: ['*'] });
      assert.deepEqual(await invite(ben!), [200, undefined]);
      assert.equal((await anna!.sync()).rooms?.invite, undefined);
      await setAccountData(anna!, 'org.matrix.msc4380.invite_permission_config', block);
      assert.deepEqual(await invite(ben!), [403, 'M_INVITE_BLOCKED']);
    });
  });
});
