import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { Administration } from '../../src/admin/test/administration.ts';
import { eventually } from '../clients/eventually.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';
import { callbacks, codeOf, delegating, denial } from './delegating.ts';
import { registrations } from './registering-module.ts';

const file = join(import.meta.dirname, 'registering-module.ts');

for (const database of selectedDatabases(import.meta.url)) {
  describe(`callbacks of modules on ${database}`, () => {
    let several: SeveralServers;
    let localServer: FederatedServer;
    let remoteServer: FederatedServer;
    let admin: Administration;
    let anna: TestClient;
    let carl: TestClient;
    let tess: TestClient;

    before(async () => {
      registrations.set('callbacks', (api) => {
        const checks = ['mayReceiveInvite', 'checkReceivedEvent', 'mayReceiveEvent', 'mayShowUser'] as const;
        api.registerSpamChecker(delegating([...checks, 'mayInvite', 'checkMediaFile'], 'allow'));
        api.registerEventRules(
          delegating(
            ['checkEventAllowed', 'mayChangeVisibility', 'mayDeleteRoom', 'mayInviteAddress'],
            'allow',
          ),
        );
        api.registerMediaRules(delegating(['mediaConfig', 'uploadLimits', 'onUploadLimit']));
        api.registerMediaRules({
          mayUpload: (userId, size) => callbacks.running.mayUpload?.(userId, size) ?? true,
        });
        api.registerRateLimits(delegating(['limitOf']));
        api.registerPresenceRouter(delegating(['receiversOf', 'interestsOf']));
        api.registerEventAdditions(delegating(['unsigned']));
        api.registerBackgroundUpdateRules(delegating(['beforeBatch', 'batchSize']));
      });
      several = new SeveralServers(database);
      localServer = await several.homeserver('here.test', {
        config: {
          modules: { modules: [{ module: file, config: { key: 'callbacks' } }] },
          directory: {
            user_directory: { search_all_users: true },
            room_list_publication_rules: [{ action: 'allow' }],
          },
        },
      });
      registrations.set('presence', (api) =>
        api.registerPresenceRouter(delegating(['receiversOf', 'interestsOf'])),
      );
      remoteServer = await several.homeserver('there.test', {
        config: { modules: { modules: [{ module: file, config: { key: 'presence' } }] } },
      });
      admin = await Administration.open(localServer);
      [anna, carl, tess] = [
        await localServer.registerClient('anna'),
        await localServer.registerClient('carl'),
        await remoteServer.registerClient('tess'),
      ];
    });
    after(() => several.stop());
    afterEach(() => {
      callbacks.running = {};
    });

    const invite = (roomId: string, from: TestClient, user: TestClient) =>
      from.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: user.id });
    const upload = (user: TestClient, body: string) =>
      localServer.api('POST', '/_matrix/media/v3/upload', {
        token: user.token,
        body,
        headers: { 'content-type': 'text/plain' },
      });

    it('lets modules reject invites by remote users, and passes the room state that the other server sends to the modules', async () => {
      const roomId = await tess.createRoom({ preset: 'private_chat', name: 'Spam' });
      const senderAndInvitee: unknown[] = [];
      callbacks.running = {
        mayReceiveInvite({ sender, stateKey, roomState }) {
          senderAndInvitee.push(sender, stateKey);
          return roomState.some(({ content }) => (content as { name?: string }).name === 'Spam')
            ? denial
            : 'allow';
        },
      };
      assert.deepEqual(codeOf(await invite(roomId, tess, anna)), [418, 'ORG_TEST_NO']);
      assert.deepEqual(senderAndInvitee, [tess.id, anna.id]);
      callbacks.running = {
        mayInvite: (inviter, invitee) => (inviter === tess.id && invitee === anna.id ? denial : 'allow'),
      };
      assert.deepEqual(codeOf(await invite(roomId, tess, anna)), [418, 'ORG_TEST_NO']);
      callbacks.running = { mayReceiveEvent: () => denial };
      assert.deepEqual(codeOf(await invite(roomId, tess, anna)), [418, 'ORG_TEST_NO']);
      assert.equal((await anna.sync()).rooms?.invite?.[roomId], undefined);
      callbacks.running = {};
      assert.equal((await invite(roomId, tess, anna)).status, 200);
    });

    it('lets modules change the content of joins of remote rooms and of invites of remote users', async () => {
      callbacks.running = {
        checkEventAllowed: ({ type, content }) =>
          type === 'm.room.member' ? { content: { ...content, displayname: '***' } } : 'allow',
      };
      const nameOf = async (viewer: TestClient, roomId: string, user: TestClient) =>
        (await viewer.do('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(user.id)}`))['displayname'];
      const remoteRoom = await tess.createRoom();
      await anna.do('POST', `/join/${enc(remoteRoom)}?server_name=there.test`, {});
      assert.equal(await nameOf(tess, remoteRoom, anna), '***');
      const localRoom = await anna.createRoom();
      assert.equal((await invite(localRoom, anna, tess)).status, 200);
      assert.equal(await nameOf(anna, localRoom, tess), '***');
    });

    it('lets modules hide events of remote users from clients or drop them, and processes later events', async () => {
      const roomId = await anna.createRoom();
      await tess.do('POST', `/join/${enc(roomId)}?server_name=here.test`, {});
      callbacks.running = {
        async checkReceivedEvent({ content, sender }, state) {
          assert.equal(await state.membership(sender), 'join');
          if (content['body'] === 'broken') throw new Error('on purpose');
          return content['body'] === 'spam' ? denial : 'allow';
        },
        mayReceiveEvent: ({ content }) => (content['body'] === 'dropped' ? denial : 'allow'),
      };
      for (const body of ['spam', 'broken', 'fine']) await tess.say(roomId, body);
      const texts = async () => {
        const answer = await anna.do('GET', `/rooms/${enc(roomId)}/messages?dir=b&limit=20`);
        const chunk = answer['chunk'] as { type: string; content: { body?: string } }[];
        return chunk.filter(({ type }) => type === 'm.room.message').map(({ content }) => content.body);
      };
      await eventually('the event that is allowed', async () => (await texts()).includes('fine'));
      assert.deepEqual(await texts(), ['fine']);
      await anna.say(roomId, 'own');
      assert.deepEqual(await texts(), ['own', 'fine']);
      await tess.say(roomId, 'dropped');
      await anna.say(roomId, 'after');
      assert.equal((await texts())[0], 'after');
    });

    it('lets modules keep users out of searches of the user directory', async () => {
      const search = async () => {
        const answer = await anna.do('POST', '/user_directory/search', { search_term: 'carl' });
        return (answer['results'] as { user_id: string }[]).map(({ user_id }) => user_id);
      };
      assert.deepEqual(await search(), [carl.id]);
      const userAndSearcher: unknown[] = [];
      callbacks.running = {
        mayShowUser(user, searcher) {
          userAndSearcher.push(user, searcher);
          return denial;
        },
      };
      assert.deepEqual(await search(), []);
      assert.deepEqual(userAndSearcher, [
        { userId: carl.id, displayName: 'carl', avatarUrl: undefined },
        anna.id,
      ]);
    });

    it('lets modules check files that users upload and files of other servers', async () => {
      callbacks.running = {
        async checkMediaFile({ userId, remoteServer, read, size, sha256 }) {
          let text = '';
          for await (const chunk of read()) text += Buffer.from(chunk).toString();
          assert.equal(text.length, size);
          assert.match(sha256, /^[0-9a-f]{64}$/);
          assert.deepEqual(
            [userId, remoteServer],
            text.includes('there') ? [undefined, 'there.test'] : [anna.id, undefined],
          );
          return text.includes('virus') ? denial : 'allow';
        },
      };
      assert.deepEqual(codeOf(await upload(anna, 'a virus')), [418, 'ORG_TEST_NO']);
      assert.equal((await upload(anna, 'harmless')).status, 200);
      const { body } = await remoteServer.api('POST', '/_matrix/media/v3/upload', {
        token: tess.token,
        body: 'a virus of there',
        headers: { 'content-type': 'text/plain' },
      });
      const media = String(body['content_uri']).slice('mxc://'.length);
      const download = () =>
        localServer.api('GET', `/_matrix/client/v1/media/download/${media}`, { token: anna.token });
      assert.deepEqual(codeOf(await download()), [418, 'ORG_TEST_NO']);
      callbacks.running = {};
      assert.equal((await download()).raw, 'a virus of there');
    });

    it('lets modules limit the uploads of single users and choose the media configuration for them', async () => {
      callbacks.running = {
        mediaConfig: (userId) => (userId === anna.id ? { 'm.upload.size': 7 } : undefined),
        mayUpload: (userId, size) => userId !== anna.id || size <= 7,
      };
      const config = (user: TestClient) =>
        localServer.api('GET', '/_matrix/client/v1/media/config', { token: user.token });
      assert.deepEqual((await config(anna)).body, { 'm.upload.size': 7 });
      assert.notEqual((await config(carl)).body['m.upload.size'], 7);
      assert.deepEqual(codeOf(await upload(anna, 'too large')), [413, 'M_TOO_LARGE']);
      assert.equal((await upload(carl, 'too large')).status, 200);
      const exceeded: unknown[] = [];
      const limit = { maxSize: 12, period: 3_600_000 };
      callbacks.running = {
        uploadLimits: (userId) => (userId === carl.id ? [limit] : undefined),
        onUploadLimit: (...values) => void exceeded.push(values),
      };
      assert.deepEqual(codeOf(await upload(carl, 'more')), [403, 'M_FORBIDDEN']);
      assert.deepEqual(exceeded, [[carl.id, limit, 9, 4]]);
      callbacks.running = { uploadLimits: () => [] };
      assert.equal((await upload(carl, 'more')).status, 200);
    });

    it('lets modules limit the invites of single users', async () => {
      const roomId = await anna.createRoom();
      const limiters: string[] = [];
      callbacks.running = {
        limitOf(userId, limiter) {
          if (userId !== anna.id) return undefined;
          limiters.push(limiter);
          return limiter === 'rc_invites.per_issuer'
            ? { perSecond: 0.001, burst: 1 }
            : { perSecond: 0, burst: 0 };
        },
      };
      assert.equal((await invite(roomId, anna, carl)).status, 200);
      assert.deepEqual(codeOf(await invite(roomId, anna, admin.admin)), [429, 'M_LIMIT_EXCEEDED']);
      assert.deepEqual(limiters.slice(0, 3), [
        'rc_invites.per_room',
        'rc_invites.per_user',
        'rc_invites.per_issuer',
      ]);
      callbacks.running = {};
      assert.equal((await invite(roomId, anna, admin.admin)).status, 200);
    });

    it('lets modules add fields to `unsigned` of events, but not replace fields that the server sets', async () => {
      const roomId = await anna.createRoom();
      callbacks.running = {
        unsigned: ({ content }) =>
          content['body'] === 'hello' ? { 'org.test.note': 'seen', age: 'wrong' } : undefined,
      };
      const eventId = await anna.say(roomId, 'hello');
      const { unsigned } = (await anna.do('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`)) as {
        unsigned: Record<string, unknown>;
      };
      assert.equal(unsigned['org.test.note'], 'seen');
      assert.equal(typeof unsigned['age'], 'number');
      callbacks.running = {
        unsigned: () => {
          throw new Error('on purpose');
        },
      };
      const otherEvent = await anna.do(
        'GET',
        `/rooms/${enc(roomId)}/event/${enc(await anna.say(roomId, 'more'))}`,
      );
      assert.equal((otherEvent['content'] as { body: string }).body, 'more');
    });

    it('lets modules forbid changes of the room directory and the deletion of rooms', async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat', name: 'Kept' });
      const setVisibility = (visibility: string) =>
        anna.call('PUT', `/directory/list/room/${enc(roomId)}`, { visibility });
      callbacks.running = {
        async mayChangeVisibility(id, visibility, state) {
          const name = await state.get('m.room.name', '');
          return id === roomId && visibility === 'private' && name?.content['name'] === 'Kept'
            ? denial
            : 'allow';
        },
        mayDeleteRoom: (administrator, id) =>
          administrator === admin.admin.id && id === roomId ? denial : 'allow',
      };
      assert.equal((await setVisibility('public')).status, 200);
      assert.deepEqual(codeOf(await setVisibility('private')), [418, 'ORG_TEST_NO']);
      for (const version of ['v1', 'v2']) {
        const answer = await admin.call('DELETE', `/${version}/rooms/${enc(roomId)}`, {});
        assert.deepEqual(codeOf(answer), [418, 'ORG_TEST_NO']);
      }
      callbacks.running = {};
      assert.equal((await setVisibility('private')).status, 200);
    });

    it('lets modules send presence to further local and remote users, and lets local users request it', async () => {
      const lisa = await localServer.registerClient('lisa');
      const mona = await localServer.registerClient('mona');
      const tessSince = (await tess.sync()).next_batch;
      const presenceOf = (user: TestClient) => lisa.call('GET', `/presence/${enc(user.id)}/status`);
      const since = (await lisa.sync()).next_batch;
      assert.equal((await presenceOf(mona)).status, 403);
      callbacks.running = {
        receiversOf: (changes) =>
          new Map(
            changes
              .filter(({ userId }) => userId === mona.id)
              .map(({ userId }) => [userId, [lisa.id, tess.id]]),
          ),
        interestsOf: (userId) => (userId === lisa.id || userId === tess.id ? [mona.id] : []),
      };
      const status = { presence: 'online', status_msg: 'here' };
      await mona.do('PUT', `/presence/${enc(mona.id)}/status`, status);
      const shownTo = async (user: TestClient, from: string) => {
        const { presence } = (await user.do('GET', `/sync?since=${from}`)) as {
          presence?: { events: { sender: string; content: Record<string, unknown> }[] };
        };
        return presence?.events.find(({ sender }) => sender === mona.id)?.content['status_msg'];
      };
      assert.equal(await eventually('the presence', () => shownTo(lisa, since)), 'here');
      assert.equal(await eventually('the presence of a remote user', () => shownTo(tess, tessSince)), 'here');
      assert.equal((await presenceOf(mona)).body['status_msg'], 'here');
      const firstSync = (await lisa.do('GET', '/sync')) as { presence?: { events: { sender: string }[] } };
      assert.ok(firstSync.presence?.events.some(({ sender }) => sender === mona.id));
    });

    it('calls modules before and after each batch of a background update, continues when the modules fail, and lets modules choose the size of the batch', async () => {
      const batches: unknown[] = [];
      const sizes: unknown[] = [undefined, 0, 2];
      for (let count = 0; count < 4; count++) await anna.createRoom();
      callbacks.running = {
        async beforeBatch({ name, rows, duration }) {
          assert.equal(typeof duration, 'number');
          batches.push([name, rows]);
          if (batches.length === 1) throw new Error('on purpose');
          return () => void batches.push('after');
        },
        batchSize: ({ rows }) => (rows === 0 ? 1 : (sizes.pop() as number | undefined)),
      };
      const job_name = 'populate_stats_process_rooms';
      await admin.do('POST', '/v1/background_updates/start_job', { job_name });
      const isDone = async () => {
        const { current_updates } = await admin.do('GET', '/v1/background_updates/status');
        return Object.keys(current_updates as object).length === 0;
      };
      await eventually('the end of the update', isDone);
      // The first batch has one row, the second two. 0 is not a valid size, so the next batch has the default size.
      const startedBatches = batches.filter((batch) => batch !== 'after');
      assert.deepEqual(startedBatches.slice(0, 3), [
        [job_name, 0],
        [job_name, 1],
        [job_name, 3],
      ]);
      assert.equal(startedBatches.length, 4);
      assert.equal(batches.length, 7);
    });
  });
}
