import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { ApplicationService } from '../../../test/support/other-servers/application-service.ts';
import { startTestServer, type TestServer, type TestUser } from '../../../test/support/servers/server.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`transactions to application services (${database})`, () => {
    let irc: ApplicationService;
    let xmpp: ApplicationService;
    let server: TestServer;
    let anna: TestUser;
    const files: string[] = [];
    before(async () => {
      irc = await ApplicationService.start('irc');
      xmpp = await ApplicationService.start('xmpp', {
        receive_ephemeral: true,
        'org.matrix.msc3202': true,
      });
      files.push(irc.file, xmpp.file);
      server = await startTestServer({
        database,
        config: {
          appservices: { app_service_config_files: files },
          rooms: { retention: { enabled: true } } as never,
        },
      });
      anna = await server.register('anna');
    });
    after(async () => {
      await server?.stop();
      await irc.stop();
      await xmpp.stop();
    });

    const v3 = '/_matrix/client/v3';
    const call = async (method: string, path: string, token: string, body?: unknown, userId?: string) => {
      const query = userId === undefined ? {} : { user_id: userId };
      const answer = await server.api(method, `${v3}${path}`, {
        token,
        query,
        ...(body !== undefined && { body }),
      });
      assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.raw}`);
      return answer.body;
    };
    const registerPuppet = async (service: ApplicationService, name: string) => {
      const body = {
        type: 'm.login.application_service',
        username: `${service.id}_${name}`,
        inhibit_login: true,
      };
      await call('POST', '/register', service.token, body);
      return `@${service.id}_${name}:test`;
    };
    const createRoom = async (body: object = {}) =>
      String((await call('POST', '/createRoom', anna.token, { preset: 'public_chat', ...body }))['room_id']);
    const join = (service: ApplicationService, userId: string, roomId: string) =>
      call('POST', `/join/${roomId}`, service.token, {}, userId);
    let count = 0;
    const say = async (roomId: string, text: string) => {
      const path = `/rooms/${roomId}/send/m.room.message/${++count}`;
      return String((await call('PUT', path, anna.token, { msgtype: 'm.text', body: text }))['event_id']);
    };
    let handledRoomId: string | undefined;
    /** Waits until the events so far are pending for the services that receive them. */
    const eventsHandled = async () => {
      handledRoomId ??= await createRoom();
      await join(irc, '@ircbot:test', handledRoomId);
      const text = `eventsHandled ${++count}`;
      await say(handledRoomId, text);
      await irc.until(() => textsOf(irc).includes(text));
    };
    const textsOf = (service: ApplicationService) =>
      service.events.filter(({ type }) => type === 'm.room.message').map(({ content }) => content.body);

    it('sends a service the events of rooms with its users, in order, once each and with the hs_token', async () => {
      const user = await registerPuppet(irc, 'ann');
      const roomId = await createRoom();
      await say(roomId, 'before the join');
      await join(irc, user, roomId);
      const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`);
      for (const text of texts) await say(roomId, text);
      await irc.until(() => textsOf(irc).length >= texts.length);
      assert.deepEqual(textsOf(irc), texts);
      const [joined] = irc.events;
      assert.deepEqual(
        [joined.type, joined.state_key, joined.room_id, joined.content.membership],
        ['m.room.member', user, roomId, 'join'],
      );
      assert.equal(typeof joined.unsigned.age, 'number');
      const ids = irc.transactions.map(({ path }) => Number(path.split('/').at(-1)));
      assert.deepEqual(
        ids,
        ids.map((_, index) => index + 1),
      );
      for (const { authorization, query, path } of irc.transactions) {
        assert.deepEqual([authorization, query.get('access_token')], [`Bearer ${irc.hsToken}`, null]);
        assert.match(path, /^\/_matrix\/app\/v1\/transactions\//);
      }
      assert.deepEqual(xmpp.events, [], 'events reached a service without users in the room');
    });

    it('sends a service the invites that its users receive, and no events of a room after the last of its users has left', async () => {
      const user = await registerPuppet(irc, 'bea');
      const roomId = await createRoom();
      await call('POST', `/rooms/${roomId}/invite`, anna.token, { user_id: user });
      await irc.until(() => irc.events.some(({ state_key }) => state_key === user));
      const invite = irc.events.find(({ state_key }) => state_key === user);
      const described = invite.unsigned.invite_room_state.map(({ type }: { type: string }) => type);
      assert.deepEqual(described.toSorted(), ['m.room.create', 'm.room.join_rules', 'm.room.member']);
      await join(irc, user, roomId);
      await say(roomId, 'while joined');
      await call('POST', `/rooms/${roomId}/leave`, irc.token, {}, user);
      await say(roomId, 'after the leave');
      const otherRoomId = await createRoom();
      await join(irc, user, otherRoomId);
      await say(otherRoomId, 'elsewhere');
      await irc.until(() => textsOf(irc).includes('elsewhere'));
      const memberships = irc.events
        .filter(({ state_key, room_id }) => state_key === user && room_id === roomId)
        .map(({ content }) => content.membership);
      assert.deepEqual(memberships, ['invite', 'join', 'leave']);
      assert.ok(textsOf(irc).includes('while joined'));
      assert.ok(!textsOf(irc).includes('after the leave'));
    });

    it('sends the events of rooms with an alias in a namespace of a service', async () => {
      const roomId = await createRoom();
      const path = `/directory/room/${encodeURIComponent('#irc_den:test')}`;
      await say(roomId, 'without an alias');
      // Rooms are selected by the aliases that they have when their events are handled.
      await eventsHandled();
      await call('PUT', path, irc.token, { room_id: roomId });
      await say(roomId, 'with an alias');
      await irc.until(() => textsOf(irc).includes('with an alias'));
      assert.ok(!textsOf(irc).includes('without an alias'));
    });

    it('repeats a transaction with the same id and content until the service accepts it, even after a restart, and delays no other service', async () => {
      const roomId = await createRoom();
      await join(irc, await registerPuppet(irc, 'cid'), roomId);
      await join(xmpp, await registerPuppet(xmpp, 'cid'), roomId);
      await say(roomId, 'all is well');
      await irc.until(() => textsOf(irc).includes('all is well'));
      let isDown = true;
      irc.respond = () => (isDown ? { status: 500, body: {} } : undefined);
      const texts = ['one', 'two', 'three'];
      await say(roomId, 'one');
      await irc.until(() => textsOf(irc).includes('one'));
      await say(roomId, 'two');
      await say(roomId, 'three');
      await xmpp.until(() => textsOf(xmpp).includes('three'));
      await server.restart();
      const failed = irc.transactions.findLast(({ body }) => JSON.stringify(body).includes('"one"'))!;
      const attempts = () => irc.transactions.filter(({ path }) => path === failed.path);
      await irc.until(() => attempts().length >= 2);
      isDown = false;
      // A request of the service shows that it is up. It ends the backoff.
      await call('GET', '/account/whoami', irc.token);
      await irc.until(() => textsOf(irc).includes('three'));
      assert.deepEqual(textsOf(irc).slice(-3), texts);
      assert.equal(new Set(attempts().map(({ body }) => JSON.stringify(body))).size, 1);
      const ids = irc.transactions.map(({ path }) => Number(path.split('/').at(-1)));
      assert.deepEqual(
        [...ids].sort((a, b) => a - b),
        ids,
        'no transaction overtakes another',
      );
      irc.respond = () => undefined;
    });

    it('sends no messages that expired under the retention policy of their room while the service was down', async () => {
      const [roomId, otherRoomId] = [await createRoom(), await createRoom()];
      const user = await registerPuppet(irc, 'dan');
      for (const room of [roomId, otherRoomId]) await join(irc, user, room);
      await say(otherRoomId, 'before the outage');
      await irc.until(() => textsOf(irc).includes('before the outage'));
      let isDown = true;
      irc.respond = () => (isDown ? { status: 500, body: {} } : undefined);
      await say(otherRoomId, 'in flight');
      await irc.until(() => textsOf(irc).includes('in flight'));
      await say(roomId, 'expired');
      const policy = `/rooms/${roomId}/state/m.room.retention/`;
      await call('PUT', policy, anna.token, { max_lifetime: 0 });
      await say(otherRoomId, 'after the outage');
      isDown = false;
      await call('GET', '/account/whoami', irc.token);
      await irc.until(() => textsOf(irc).includes('after the outage'));
      assert.ok(irc.events.some(({ type }) => type === 'm.room.retention'));
      assert.ok(!textsOf(irc).includes('expired'));
      irc.respond = () => undefined;
    });

    it('sends typing, receipts, presence and to-device messages to services with receive_ephemeral', async () => {
      const user = await registerPuppet(xmpp, 'dan');
      const roomId = await createRoom();
      await join(xmpp, user, roomId);
      const eventId = await say(roomId, 'read me');
      await call('PUT', `/rooms/${roomId}/typing/${anna.userId}`, anna.token, {
        typing: true,
        timeout: 30_000,
      });
      await call('POST', `/rooms/${roomId}/receipt/m.read/${eventId}`, anna.token, {});
      await call('PUT', `/presence/${anna.userId}/status`, anna.token, {
        presence: 'online',
        status_msg: 'here',
      });
      const ephemeral = () => xmpp.transactions.flatMap(({ body }) => body.ephemeral ?? []);
      const has = (type: string) => ephemeral().some((item: { type: string }) => item.type === type);
      await xmpp.until(() => ['m.typing', 'm.receipt', 'm.presence'].every(has));
      const find = (type: string) => ephemeral().findLast((item: { type: string }) => item.type === type);
      assert.deepEqual(find('m.typing'), {
        type: 'm.typing',
        room_id: roomId,
        content: { user_ids: [anna.userId] },
      });
      assert.equal(find('m.receipt').content[eventId]['m.read'][anna.userId].ts > 0, true);
      assert.equal(find('m.presence').sender, anna.userId);
      await call('PUT', '/devices/BRIDGE', xmpp.token, {}, user);
      await call('PUT', '/sendToDevice/m.custom/1', anna.token, {
        messages: { [user]: { BRIDGE: { secret: 1 } } },
      });
      const messages = () => xmpp.transactions.flatMap(({ body }) => body.to_device ?? []);
      await xmpp.until(() => messages().length > 0);
      assert.deepEqual(messages(), [
        {
          sender: anna.userId,
          type: 'm.custom',
          content: { secret: 1 },
          to_user_id: user,
          to_device_id: 'BRIDGE',
        },
      ]);
      const query = { user_id: user, device_id: 'BRIDGE' };
      const synced = await server.api('GET', `${v3}/sync`, { token: xmpp.token, query });
      assert.ok(
        !synced.raw.includes('m.custom'),
        'a message that a transaction contained was received in a sync as well',
      );
      assert.ok(irc.transactions.every(({ body }) => !('ephemeral' in body) && !('to_device' in body)));
    });

    it('sends changed device lists and counts of keys to services with org.matrix.msc3202', async () => {
      const user = await registerPuppet(xmpp, 'eve');
      const roomId = await createRoom();
      await join(xmpp, user, roomId);
      await call('PUT', '/devices/KEYS', xmpp.token, {}, user);
      await call('PUT', `/devices/${anna.deviceId}`, anna.token, { display_name: 'New name' });
      const lists = () =>
        xmpp.transactions.flatMap(({ body }) => body['org.matrix.msc3202.device_lists']?.changed ?? []);
      await xmpp.until(() => lists().includes(anna.userId));
      const upload = { fallback_keys: { 'signed_curve25519:AAAA': { key: 'x'.repeat(43), fallback: true } } };
      const query = { user_id: user, device_id: 'KEYS' };
      const uploaded = await server.api('POST', `${v3}/keys/upload`, {
        token: xmpp.token,
        query,
        body: upload,
      });
      assert.equal(uploaded.status, 200, uploaded.raw);
      const counts = () =>
        xmpp.transactions.findLast(({ body }) => body.device_one_time_keys_count?.[user])?.body;
      await xmpp.until(() => counts() !== undefined);
      assert.deepEqual(counts().device_one_time_keys_count, { [user]: { KEYS: { signed_curve25519: 0 } } });
      assert.deepEqual(counts()['org.matrix.msc3202.device_unused_fallback_key_types'], {
        [user]: { KEYS: ['signed_curve25519'] },
      });
      assert.ok(irc.transactions.every(({ body }) => !('device_lists' in body)));
    });

    it('sends users who begin to share an encrypted room with a service as changed, and users who share no room with it any more as left', async () => {
      const user = await registerPuppet(xmpp, 'fay');
      const [bert, carl] = [await server.register('bert'), await server.register('carl')];
      const state_key = '';
      const type = 'm.room.encryption';
      const initial_state = [{ type, state_key, content: { algorithm: 'm.megolm.v1.aes-sha2' } }];
      const [first, second] = [await createRoom({ initial_state }), await createRoom({ initial_state })];
      /**
       * Runs `work` and sends a message. Returns the device lists in the transactions that these cause, each user once.
       */
      const listsOf = async (work: () => Promise<unknown>) => {
        const transactionsBefore = xmpp.transactions.length;
        await work();
        const text = `message ${++count}`;
        await say(first, text);
        await xmpp.until(() => textsOf(xmpp).includes(text));
        const lists = xmpp.transactions.slice(transactionsBefore).map(({ body }) => body.device_lists);
        const users = (kind: string) => [...new Set(lists.flatMap((list) => list?.[kind] ?? []))].sort();
        return [users('changed'), users('left')];
      };
      const setMembership = (user: TestUser, action: string, roomId: string) =>
        call('POST', `/rooms/${roomId}/${action}`, user.token, {});
      await join(xmpp, `@xmppbot:test`, first);
      const enter = () => join(xmpp, user, second);
      await setMembership(bert, 'join', second);
      assert.deepEqual(await listsOf(enter), [[anna.userId, bert.userId], []]);
      assert.deepEqual(await listsOf(() => setMembership(carl, 'join', second)), [[carl.userId], []]);
      assert.deepEqual(await listsOf(() => setMembership(carl, 'leave', second)), [[], [carl.userId]]);
      assert.deepEqual(await listsOf(() => setMembership(carl, 'join', first)), [[carl.userId], []]);
      assert.deepEqual(await listsOf(() => setMembership(carl, 'join', second)), [[carl.userId], []]);
      assert.deepEqual(await listsOf(() => setMembership(carl, 'leave', second)), [[], []]);
      const leave = () => call('POST', `/rooms/${second}/leave`, xmpp.token, {}, user);
      assert.deepEqual(await listsOf(leave), [[], [bert.userId]]);
    });

    it('sends services the events of rooms whose ids are in a namespace, exclusive or not, although none of their users is in the room', async () => {
      const [watchedRoom, otherRoomId] = [await createRoom({ room_version: '11' }), await createRoom()];
      const watchers = await Promise.all(
        [true, false].map((exclusive) =>
          ApplicationService.start(exclusive ? 'owner' : 'watcher', {
            namespaces: { users: [], aliases: [], rooms: [{ regex: `${watchedRoom}$`, exclusive }] },
          }),
        ),
      );
      files.push(...watchers.map(({ file }) => file));
      try {
        // After the restart, the services also receive earlier events of the room that are not handled yet.
        await eventsHandled();
        await server.restart();
        await say(otherRoomId, 'elsewhere');
        const user = await registerPuppet(irc, 'guy');
        await join(irc, user, watchedRoom);
        await say(watchedRoom, 'in the room');
        for (const watcher of watchers) {
          await watcher.until(() => textsOf(watcher).length > 0);
          const seen = watcher.events.map(({ state_key, content }) => [state_key, content.body]);
          assert.deepEqual(seen, [
            [user, undefined],
            [undefined, 'in the room'],
          ]);
        }
        // An exclusive namespace of rooms keeps no other service out.
        await irc.until(() => textsOf(irc).includes('in the room'));
      } finally {
        await Promise.all(watchers.map((watcher) => watcher.stop()));
      }
    });
  });
}

for (const database of selectedDatabases(import.meta.url)) {
  describe(`an application service that is registered again (${database})`, () => {
    it('receives no events from the time when it was not registered', async () => {
      const irc = await ApplicationService.start('irc');
      const files = [irc.file];
      const config = { appservices: { app_service_config_files: files } };
      const server = await startTestServer({ database, config });
      try {
        const { token } = await server.register('anna');
        const call = async (method: string, path: string, accessToken: string, body: object) => {
          const answer = await server.api(method, `/_matrix/client/v3${path}`, { token: accessToken, body });
          assert.equal(answer.status, 200, answer.raw);
          return answer.body;
        };
        const createdRoom = await call('POST', '/createRoom', token, { preset: 'public_chat' });
        const roomId = String(createdRoom['room_id']);
        await call('POST', `/join/${roomId}`, irc.token, {});
        const say = (text: string) =>
          call('PUT', `/rooms/${roomId}/send/m.room.message/${text}`, token, {
            msgtype: 'm.text',
            body: text,
          });
        const has = (text: string) => irc.events.some(({ content }) => content.body === text);
        await say('before');
        await irc.until(() => has('before'));
        files.length = 0;
        await server.restart();
        await say('between');
        files.push(irc.file);
        await server.restart();
        await say('after');
        await irc.until(() => has('after'));
        assert.ok(!has('between'));
      } finally {
        await server.stop();
        await irc.stop();
      }
    });
  });
}
