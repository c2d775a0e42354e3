import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { selectedDatabases } from '../../test/support/databases/databases.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../test/support/servers/server.ts';

const v3 = '/_matrix/client/v3';

type SyncBody = { next_batch: string; presence?: { events: { sender: string; content: object }[] } };

for (const database of selectedDatabases(import.meta.url)) {
  describe(`presence over HTTP on ${database}`, () => {
    let server: TestServer;
    let alice: TestUser;
    let bob: TestUser;
    let carol: TestUser;

    before(async () => {
      server = await startTestServer({ database });
      alice = await server.register('alice');
      bob = await server.register('bob');
      carol = await server.register('carol');
      const body = { preset: 'private_chat', invite: [bob.userId] };
      const room = await server.api('POST', `${v3}/createRoom`, { token: alice.token, body });
      await server.api('POST', `${v3}/join/${room.body['room_id']}`, { token: bob.token, body: {} });
    });
    after(() => server.stop());

    const status = (user: TestUser, of: TestUser) =>
      server.api('GET', `${v3}/presence/${of.userId}/status`, { token: user.token });
    const set = (user: TestUser, of: TestUser, body: unknown) =>
      server.api('PUT', `${v3}/presence/${of.userId}/status`, { token: user.token, body });
    const sync = async (user: TestUser, query: Record<string, string | number>) => {
      const answer = await server.api('GET', `${v3}/sync`, { token: user.token, query });
      assert.equal(answer.status, 200, answer.raw);
      return answer.body as unknown as SyncBody;
    };
    const senders = ({ presence }: SyncBody) => presence?.events.map(({ sender }) => sender) ?? [];

    it('sends the presence of an offline user once to the members of a room that the user joins', async () => {
      const [host, guest] = [await server.register('host'), await server.register('guest')];
      const body = { preset: 'public_chat' };
      const room = await server.api('POST', `${v3}/createRoom`, { token: host.token, body });
      const first = await sync(host, { set_presence: 'offline' });
      await server.api('POST', `${v3}/join/${room.body['room_id']}`, { token: guest.token, body: {} });
      const second = await sync(host, { set_presence: 'offline', since: first.next_batch });
      assert.deepEqual(
        second.presence?.events.map(({ sender, content }) => [
          sender,
          (content as { presence: string }).presence,
        ]),
        [[guest.userId, 'offline']],
      );
      const third = await sync(host, { set_presence: 'offline', since: second.next_batch });
      assert.equal(third.presence, undefined);
    });

    it('sets the presence of a user by a sync; the syncs of users who share a room then contain the presence', async () => {
      const first = await sync(bob, { set_presence: 'offline' });
      assert.deepEqual(senders(first), []);
      const waiting = sync(bob, { set_presence: 'offline', since: first.next_batch, timeout: 100_000 });
      await sync(alice, {});
      const answer = await waiting;
      assert.deepEqual(senders(answer), [alice.userId]);
      const { body } = await status(bob, alice);
      assert.deepEqual([body['presence'], body['currently_active']], ['online', true]);
      assert.equal((await status(bob, bob)).body['presence'], 'offline');
      assert.deepEqual(senders(await sync(carol, { set_presence: 'offline' })), []);
      const initial = await sync(bob, { set_presence: 'offline' });
      assert.deepEqual(senders(initial), [alice.userId]);
      const filter = JSON.stringify({ presence: { not_types: ['m.*'] } });
      assert.deepEqual(senders(await sync(bob, { set_presence: 'offline', filter })), []);
    });

    it('sets presence and status message by PUT /presence/{userId}/status', async () => {
      const { next_batch: since } = await sync(bob, { set_presence: 'offline' });
      assert.equal((await set(alice, alice, { presence: 'unavailable', status_msg: 'Tea' })).status, 200);
      const answer = await sync(bob, { set_presence: 'offline', since, timeout: 100_000 });
      const { last_active_ago, ...content } = (answer.presence?.events[0]?.content ?? {}) as Record<
        string,
        unknown
      >;
      assert.deepEqual(content, { presence: 'unavailable', status_msg: 'Tea' });
      assert.equal(typeof last_active_ago, 'number');
      assert.equal((await set(alice, alice, { presence: 'online', status_msg: null })).status, 200);
      assert.equal((await status(alice, alice)).body['status_msg'], undefined);
    });

    it('answers 403 M_FORBIDDEN to requests for the presence of a user without a shared room, and to requests that set the presence of another user', async () => {
      const refused = [await status(carol, alice), await set(bob, alice, { presence: 'online' })];
      for (const { status: code, body } of refused)
        assert.deepEqual([code, body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal((await server.api('GET', `${v3}/presence/${alice.userId}/status`)).status, 401);
      assert.equal(
        (await server.api('GET', `${v3}/presence/alice/status`, { token: bob.token })).status,
        400,
      );
    });

    it('answers 400 to a malformed PUT /presence/{userId}/status', async () => {
      for (const body of [{}, { presence: 'asleep' }, { presence: 'online', status_msg: 5 }, []]) {
        assert.equal((await set(alice, alice, body)).status, 400, JSON.stringify(body));
      }
    });

    it('keeps the presence of users over a restart', async () => {
      await set(alice, alice, { presence: 'online', status_msg: 'Here' });
      await server.restart();
      const { body } = await status(bob, alice);
      assert.deepEqual([body['presence'], body['status_msg']], ['online', 'Here']);
    });
  });

  describe(`presence options over HTTP on ${database}`, () => {
    const withPresenceOptions = async (
      presence: NonNullable<NonNullable<ConfigurationOverrides['presence']>['presence']>,
      work: (
        users: { alice: TestUser; bob: TestUser; carol: TestUser },
        api: TestServer['api'],
        presenceInSync: (
          more?: Record<string, string | number | boolean>,
        ) => Promise<Record<string, unknown>>,
      ) => Promise<void>,
    ) => {
      // The clock stands still, so that no change is announced between two syncs.
      const clock = manualClock();
      const server = await startTestServer({ database, clock, config: { presence: { presence } } });
      try {
        const [alice, bob] = [await server.register('alice'), await server.register('bob')];
        const room = { preset: 'public_chat' };
        const made = await server.api('POST', `${v3}/createRoom`, { token: alice.token, body: room });
        // Carol is never active except for joining the room.
        const carol = await server.register('carol');
        for (const { token } of [bob, carol]) {
          await server.api('POST', `${v3}/join/${made.body['room_id']}`, { token, body: {} });
        }
        let since: string | undefined;
        /** Returns the presence in the next sync of Bob, by user. */
        const presenceInSync = async (more: Record<string, string | number | boolean> = {}) => {
          const query = { set_presence: 'offline', ...(since === undefined ? {} : { since }), ...more };
          const { body } = await server.api('GET', `${v3}/sync`, { token: bob.token, query });
          const { next_batch, presence: part } = body as unknown as SyncBody;
          since = next_batch;
          const events = part?.events ?? [];
          return Object.fromEntries(
            events.map(({ sender, content }) => [sender, (content as { presence: string }).presence]),
          );
        };
        await work({ alice, bob, carol }, server.api, presenceInSync);
      } finally {
        await server.stop();
      }
    };
    const path = (user: TestUser) => `${v3}/presence/${user.userId}/status`;

    it('includes offline users in an initial sync and with full_state (presence.include_offline_users_on_sync)', async () => {
      for (const include_offline_users_on_sync of [false, true]) {
        await withPresenceOptions(
          { enabled: true, include_offline_users_on_sync },
          async ({ alice, carol }, api, presenceInSync) => {
            for (const presence of ['online', 'offline']) {
              await api('PUT', path(alice), { token: alice.token, body: { presence } });
            }
            const expected = include_offline_users_on_sync
              ? { [alice.userId]: 'offline', [carol.userId]: 'offline' }
              : {};
            assert.deepEqual(await presenceInSync(), expected, 'initial');
            assert.deepEqual(await presenceInSync(), {}, 'incremental');
            assert.deepEqual(await presenceInSync({ full_state: true }), expected, 'full_state');
          },
        );
      }
    });

    it('answers PUT /presence/{userId}/status with 200, and ignores the sent presence, when presence is off or untracked (presence.enabled)', async () => {
      for (const enabled of [false, 'untracked'] as const) {
        await withPresenceOptions(
          { enabled, include_offline_users_on_sync: false },
          async ({ alice, bob }, api, presenceInSync) => {
            const body = { presence: 'online', status_msg: 'Here' };
            const { status } = await api('PUT', path(alice), { token: alice.token, body });
            assert.equal(status, 200);
            await api('GET', `${v3}/sync`, { token: alice.token });
            assert.deepEqual(await presenceInSync(), {});
            const seen = await api('GET', path(alice), { token: bob.token });
            assert.deepEqual([seen.status, seen.body], [200, { presence: 'offline' }]);
          },
        );
      }
    });
  });
}
