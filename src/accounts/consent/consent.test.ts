import assert from 'node:assert/strict';
import fs, { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, describe, it, mock } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';

const listeners = [
  {
    port: 0,
    type: 'http',
    bind_addresses: ['127.0.0.1'],
    resources: [{ names: ['client', 'consent'] }],
  },
  { port: 0, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] },
];

const minute = 60_000;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('user_consent', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-consent-'));
    mkdirSync(join(folder, 'en'));
    for (const name of ['1.0', '2.0', 'success']) writeFileSync(join(folder, 'en', `${name}.html`), name);
    after(() => rmSync(folder, { recursive: true }));

    let server: TestServer;
    let addresses: readonly string[];
    let clock: ManualClock;
    afterEach(() => server.stop());

    const start = async (user_consent: object) => {
      clock = manualClock();
      server = await startTestServer({
        database: kind,
        clock,
        listening: (all) => {
          addresses = all;
        },
        config: {
          server: { public_baseurl: 'https://chat.example/' },
          http: { listeners } as never,
          serverNotices: { server_notices: { system_mxid_localpart: 'notices' } },
          accounts: {
            form_secret: 'secret',
            allow_guest_access: true,
            user_consent: { template_dir: folder, version: '2.0', ...user_consent } as never,
          },
        },
      });
    };
    const guest = async () => {
      const request = { query: { kind: 'guest' }, body: {} };
      const { body } = await server.api('POST', '/_matrix/client/v3/register', request);
      const [userId, token] = [String(body['user_id']), String(body['access_token'])];
      return new TestClient(server, { userId, deviceId: '', token });
    };
    /** Agrees to a version of the policy with the link, as a browser does. */
    const post = async (link: string, v: string) => {
      const { searchParams } = new URL(link);
      const fields = { v, u: searchParams.get('u') ?? '', h: searchParams.get('h') ?? '' };
      const url = `${server.baseUrl}/_matrix/consent`;
      return fetch(url, { method: 'POST', body: new URLSearchParams(fields) });
    };
    const agree = async (link: string, v: string) => {
      const answer = await post(link, v);
      assert.deepEqual([answer.status, await answer.text()], [200, 'success']);
    };
    /** Syncs, and waits for the invite to the notice room. */
    const noticeRoom = (user: TestClient) =>
      eventually('the notice', async () => {
        clock.advance(minute);
        return Object.keys((await user.sync()).rooms?.invite ?? {})[0];
      });
    const noticesIn = async (user: TestClient, roomId: string) => {
      const { chunk } = await user.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, { dir: 'b' });
      const events = chunk as { type: string; content: Record<string, string> }[];
      return events.flatMap(({ type, content }) => (type === 'm.room.message' ? [content] : []));
    };

    it('refuses events of users who have not agreed to the policy, and sends each user except guests and bots one notice [option: user_consent.block_events_error, user_consent.server_notice_content.msgtype, user_consent.server_notice_content.body, user_consent.send_server_notice_to_guests]', async () => {
      await start({
        block_events_error: 'Agree at %(consent_uri)s first',
        server_notice_content: { msgtype: 'm.notice', body: 'Please agree at %(consent_uri)s' },
      });
      const alice = await TestClient.register(server, 'alice');
      const visitor = await guest();
      const admin = await registerAdmin(server);
      const bot = await TestClient.register(server, 'bot');
      await admin.request('PUT', `/_synapse/admin/v2/users/${bot.id}`, { user_type: 'bot' });
      const { status, body } = await alice.call('POST', '/createRoom', {});
      const link = String(body['consent_uri']);
      assert.match(link, /^https:\/\/chat\.example\/_matrix\/consent\?u=alice&h=[0-9a-f]{64}$/);
      const refusal = { errcode: 'M_CONSENT_NOT_GIVEN', error: `Agree at ${link} first`, consent_uri: link };
      assert.deepEqual([status, body], [403, refusal]);

      const pageAt = async (base: unknown) =>
        (await fetch(`${base}/_matrix/consent${new URL(link).search}`)).status;
      assert.deepEqual(
        await Promise.all(addresses.map(pageAt)),
        [200, 404],
        'only a listener with the resource consent serves the page',
      );
      const roomId = await noticeRoom(alice);
      await alice.join(roomId);
      await server.restart();
      for (let syncs = 0; syncs < 2; syncs += 1) {
        clock.advance(minute);
        await alice.sync();
        await visitor.sync();
        await bot.sync();
      }
      // The server completes the notices that it is sending before it stops.
      await server.restart();
      assert.deepEqual(await noticesIn(alice, roomId), [
        { msgtype: 'm.notice', body: `Please agree at ${link}` },
      ]);
      assert.equal((await visitor.sync()).rooms?.invite, undefined, 'guests are not notified');
      assert.equal((await bot.sync()).rooms?.invite, undefined, 'bots need not agree');

      const send = (user: TestClient) =>
        user.call('PUT', `/rooms/${enc(roomId)}/send/m.room.message/t${clock.now()}`, {
          msgtype: 'm.text',
          body: 'x',
        });
      assert.equal((await send(alice)).body['errcode'], 'M_CONSENT_NOT_GIVEN');
      // Other requests that send events are refused as well.
      const room = `/rooms/${enc(roomId)}`;
      for (const [method, path, content] of [
        ['POST', `${room}/send/m.room.message`, { msgtype: 'm.text', body: 'x' }],
        ['POST', `${room}/redact/${enc('$event')}`, {}],
        ['PUT', `${room}/delayed_event/m.room.message/t1`, { delay_ms: 1_000, content: {} }],
      ] as const) {
        const refused = await alice.call(method, path, content);
        assert.equal(refused.body['errcode'], 'M_CONSENT_NOT_GIVEN', `${method} ${path}`);
      }
      await agree(link, '1.0');
      assert.equal(
        (await alice.call('POST', '/createRoom', {})).status,
        403,
        'an older version is not enough',
      );
      await agree(link, '2.0');
      assert.equal((await post(link, '3.0')).status, 404, 'there is no such version');
      const { body: details } = await admin.request('GET', `/_synapse/admin/v2/users/${alice.id}`, undefined);
      assert.deepEqual(
        [details['consent_version'], details['consent_ts'], details['consent_server_notice_sent']],
        ['2.0', clock.now(), '2.0'],
      );
      const ownRoom = await alice.createRoom();
      await agree(link, '1.0');
      assert.equal((await alice.call('POST', '/createRoom', {})).status, 403);
      await alice.leave(ownRoom);
      assert.equal((await admin.call('POST', '/createRoom', {})).status, 403, 'administrators agree, too');
      await admin.request('PUT', `/_synapse/admin/v2/users/${alice.id}`, { user_type: 'bot' });
      await alice.createRoom();
    });

    it('refuses to start without the folder of the templates', async () => {
      const missing = join(folder, 'missing');
      await assert.rejects(
        start({ template_dir: missing }),
        /user_consent\.template_dir: the folder .*missing cannot be read: it does not exist/,
      );
    });

    it('looks up the templates of a language once, however often the Accept-Language header contains the language', async () => {
      await start({});
      const lookups = mock.method(fs, 'existsSync');
      syncBuiltinESMExports();
      try {
        const headers = { 'accept-language': 'en,en-GB,'.repeat(1_000) };
        const { status } = await fetch(`${server.baseUrl}/_matrix/consent?v=none`, { headers });
        const paths = lookups.mock.calls.map(({ arguments: [path] }) => String(path));
        const found = paths.filter((path) => path.startsWith(folder));
        assert.deepEqual([status, found.length], [404, 1]);
      } finally {
        lookups.mock.restore();
        syncBuiltinESMExports();
      }
    });

    it('sends the notice about the policy to guests when send_server_notice_to_guests is true [option: user_consent.send_server_notice_to_guests]', async () => {
      await start({
        server_notice_content: { msgtype: 'm.text', body: 'Agree at %(consent_uri)s' },
        send_server_notice_to_guests: true,
      });
      const visitor = await guest();
      const roomId = await noticeRoom(visitor);
      await visitor.join(roomId);
      const [notice, ...more] = await noticesIn(visitor, roomId);
      assert.match(notice?.['body'] ?? '', /^Agree at https:\/\/chat\.example\/_matrix\/consent\?u=\d+&h=/);
      assert.deepEqual(more, []);
      const alice = await TestClient.register(server, 'alice');
      await alice.createRoom();
    });
  });
});
