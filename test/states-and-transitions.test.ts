/**
 * States of devices, sessions, rooms, events and media, and their transitions: each state lasts over a restart of the
 * server until the condition of its transition is true, and the state after the transition lasts over another restart.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from './clients/eventually.ts';
import { type SkippableClock, skippableClock } from './support/clocks/skippable-clock.ts';
import { type DatabaseContents, openContents } from './support/databases/database-contents.ts';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { registerAdmin } from './support/users/register-admin.ts';
import { enc, TestClient } from './support/users/test-client.ts';

const hour = 3_600_000;
const day = 24 * hour;

/** Value of each option with a period, in milliseconds. */
const period = 2 * day;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('states and transitions', () => {
    let server: TestServer;
    let clock: SkippableClock;
    let alice: TestClient;
    let admin: TestClient;
    let stale: TestClient;
    let session: TestClient;
    let room: string;
    let forgotten: string;
    let redacted: string;
    let reserved: string;
    let media: Record<'idle' | 'protected' | 'quarantined', string>;

    const login = async (device_id: string, more: object = {}) => {
      const { body } = await server.api('POST', '/_matrix/client/v3/login', {
        body: {
          type: 'm.login.password',
          identifier: { type: 'm.id.user', user: 'alice' },
          password: 'correct horse',
          device_id,
          ...more,
        },
      });
      return new TestClient(server, {
        userId: alice.id,
        deviceId: device_id,
        token: String(body['access_token']),
      });
    };
    const upload = async (body: string) => {
      const { body: upload } = await server.api('POST', '/_matrix/media/v3/upload', {
        token: alice.token,
        body,
      });
      return String(upload['content_uri']).slice('mxc://test/'.length);
    };
    const withContents = async <T>(work: (contents: DatabaseContents) => Promise<T>): Promise<T> => {
      const contents = await openContents(server.databaseOptions);
      try {
        return await work(contents);
      } finally {
        await contents.close();
      }
    };
    const idsIn = (table: string, column: string) =>
      withContents(async (contents) => (await contents.rows(table)).map((row) => String(row[column])));

    /** Each state, as far as a client or the database shows it. */
    const states = {
      device: async () => (await idsIn('devices', 'device_id')).includes('STALE'),
      unredacted: async () => {
        const query = { 'fi.mau.msc2815.include_unredacted_content': true };
        const path = `/rooms/${enc(room)}/event/${enc(redacted)}`;
        return (await alice.call('GET', path, undefined, query)).status === 200;
      },
      /** While an upload is pending, no other media id can be created, because the maximum of pending uploads is 1. */
      pendingUpload: async () => (await createMedia()).status === 429,
      forgottenRoom: async () => (await idsIn('rooms', 'room_id')).includes(forgotten),
      localMedia: async () => (await idsIn('local_media', 'media_id')).includes(media.idle),
      remoteMedia: async () => (await idsIn('remote_media', 'media_id')).includes('copy'),
      session: async () => (await session.call('GET', '/account/whoami')).status === 200,
    };
    const createMedia = () =>
      server.api('POST', '/_matrix/media/v1/create', { token: alice.token, body: {} });
    const isBusy = () =>
      withContents(async (contents) =>
        (await contents.rows('jobs')).some(
          (job) =>
            job['state'] === 'waiting' &&
            (Number(job['lease_until']) > 0 || Number(job['run_at']) <= clock.now()),
        ),
      );
    /**
     * Advances the clock until the state has ended: by six hours whenever all jobs that are due have run, since jobs run
     * once an hour or once a day. Alice uses her device at each step, so that it does not become stale.
     */
    const waitForEnd = (state: keyof typeof states) =>
      eventually(`the end of ${state}`, async () => {
        if (await isBusy()) return false;
        if (!(await states[state]())) return true;
        await alice.do('GET', '/account/whoami');
        clock.advance(6 * hour);
        return false;
      });

    before(async () => {
      clock = skippableClock();
      server = await startTestServer({
        database: kind,
        clock,
        config: {
          devices: { delete_stale_devices_after: period },
          rooms: { redaction_retention_period: period, forgotten_room_retention_period: period },
          media: {
            unused_expiration_time: period,
            max_pending_media_uploads: 1,
            media_retention: { local_media_lifetime: period, remote_media_lifetime: period },
          },
          accounts: { refreshable_access_token_lifetime: period },
        } as never,
      });
      alice = await TestClient.register(server, 'alice');
      admin = await registerAdmin(server);
      [stale, session] = [await login('STALE'), await login('SESSION', { refresh_token: true })];
      await stale.do('GET', '/account/whoami');
      room = await alice.createRoom();
      redacted = await alice.say(room, 'secret');
      await alice.redact(room, redacted);
      forgotten = await alice.createRoom();
      await alice.leave(forgotten);
      await alice.membership('forget', forgotten);
      reserved = String((await createMedia()).body['content_uri']).slice('mxc://test/'.length);
      media = {
        idle: await upload('idle'),
        protected: await upload('safe'),
        quarantined: await upload('evil'),
      };
      const administer = (path: string) => admin.request('POST', `/_synapse/admin/v1/media/${path}`, {});
      assert.equal((await administer(`protect/${media.protected}`)).status, 200);
      assert.equal((await administer(`quarantine/test/${media.quarantined}`)).status, 200);
      await withContents((contents) =>
        contents.insert('remote_media', {
          server_name: 'far.test',
          media_id: 'copy',
          file_id: 'copy',
          fetched_at: clock.now(),
          content_type: 'text/plain',
          size: 1,
          sha256: '00',
          authenticated: 1,
        }),
      );
      clock.advance(period - 8 * hour);
      await alice.do('GET', '/account/whoami');
    });
    after(() => server.stop());

    it('each state with a period stays until the period has ended, also over a restart', async () => {
      await server.restart();
      for (const [name, state] of Object.entries(states)) assert.equal(await state(), true, name);
    });

    it('device: the daily task logs out and deletes a device that was not accessed for delete_stale_devices_after', async () => {
      await waitForEnd('device');
      assert.equal((await stale.call('GET', '/account/whoami')).body['errcode'], 'M_UNKNOWN_TOKEN');
      assert.equal((await alice.call('GET', '/account/whoami')).status, 200, 'a device in use stays');
    });

    it('redacted event: the unredacted form is deleted after redaction_retention_period', async () => {
      await waitForEnd('unredacted');
      const event = await alice.do('GET', `/rooms/${enc(room)}/event/${enc(redacted)}`);
      assert.deepEqual(event['content'], {});
    });

    it('pending media upload: expires without an upload after unused_expiration_time, and does not count as pending from then on', async () => {
      await waitForEnd('pendingUpload');
      const { status } = await server.api('PUT', `/_matrix/media/v3/upload/test/${reserved}`, {
        token: alice.token,
        body: 'late',
      });
      assert.equal(status, 404);
    });

    it('forgotten room: is purged from the database after forgotten_room_retention_period', async () => {
      await waitForEnd('forgottenRoom');
      assert.ok((await idsIn('rooms', 'room_id')).includes(room), 'other rooms stay');
    });

    it('media, local or cached: is deleted after its lifetime without access, unless it is quarantined or protected', async () => {
      await waitForEnd('localMedia');
      await waitForEnd('remoteMedia');
      const remainingIds = await idsIn('local_media', 'media_id');
      assert.ok(remainingIds.includes(media.protected) && remainingIds.includes(media.quarantined));
    });

    it('authenticated media: unauthenticated downloads of a new upload are refused, also after a restart', async () => {
      const legacy = `/_matrix/media/v3/download/test/${media.protected}`;
      assert.equal((await server.api('GET', legacy)).status, 404);
      const path = `${server.baseUrl}/_matrix/client/v1/media/download/test/${media.protected}`;
      const response = await fetch(path, { headers: { authorization: `Bearer ${alice.token}` } });
      assert.deepEqual([response.status, await response.text()], [200, 'safe']);
    });

    it('user session: ends after the lifetime of its access token', async () => {
      await waitForEnd('session');
      const { body } = await session.call('GET', '/account/whoami');
      // Its device may be deleted as stale at the same time, so `soft_logout` is not checked.
      assert.equal(body['errcode'], 'M_UNKNOWN_TOKEN');
    });

    it('each state whose period has ended stays ended after another restart', async () => {
      await server.restart();
      for (const name of [
        'device',
        'unredacted',
        'forgottenRoom',
        'localMedia',
        'remoteMedia',
        'session',
      ] as const)
        assert.equal(await states[name](), false, name);
      const uploadPath = `/_matrix/media/v3/upload/test/${reserved}`;
      const { status } = await server.api('PUT', uploadPath, { token: alice.token, body: 'later' });
      assert.equal(status, 404, 'pendingUpload');
    });
  });
});
