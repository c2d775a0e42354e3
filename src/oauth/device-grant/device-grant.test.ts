import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { elementX, fieldsOf, locationOf, OAuthClient, postJson, TestBrowser } from '../test/oauth-client.ts';

const grantType = 'urn:ietf:params:oauth:grant-type:device_code';
const link = '/_synapse/client/oauth2/link';

forSelectedDatabases(import.meta.url, (open) => {
  describe('the device authorization grant', () => {
    let server: TestServer;
    let clock: ManualClock;
    let client: OAuthClient;
    before(async () => {
      clock = manualClock();
      server = await startTestServer({
        database: open.kind,
        clock,
        config: { oauth: { oauth2: { enabled: true } } },
      });
      await server.register('alice');
      client = await OAuthClient.register(server);
    });
    after(() => server.stop());

    const poll = async (deviceCode: unknown, as = client) => {
      await clock.advance(5_000);
      return as.token({ grant_type: grantType, device_code: String(deviceCode) });
    };
    const begin = async (deviceId: string) =>
      (await client.beginOnDevice(deviceId)).json as Record<string, string>;
    const signIn = async (url: string) => {
      const browser = new TestBrowser(server);
      return {
        browser,
        page: await browser.open(locationOf(await browser.signIn(await browser.open(url), 'alice'))),
      };
    };

    it('logs a device in after its user has allowed it in a browser', async () => {
      const begun = await begin('TELEVISION');
      assert.match(begun['user_code']!, /^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/);
      assert.equal(begun['verification_uri'], `https://test${link}`);
      assert.deepEqual([begun['expires_in'], begun['interval']], [900, 5]);
      const code = begun['device_code'];
      assert.equal((await poll(code)).json['error'], 'authorization_pending');
      const { browser, page } = await signIn(begun['verification_uri_complete']!);
      assert.ok(page.text.includes(begun['user_code']!), page.text);
      assert.match(page.text, /Element X<\/strong> \(element\.io\)/);
      const done = await browser.post(link, { ...fieldsOf(page.text), decision: 'allow' });
      assert.match(done.text, /role="status">Continue on the device/);
      const tokens = await poll(code);
      assert.deepEqual(await client.whoami(tokens.json['access_token']), ['@alice:test', 'TELEVISION']);
      assert.equal((await client.refresh(tokens.json['refresh_token'])).status, 200);
      assert.equal((await poll(code)).json['error'], 'invalid_grant');
    });

    it('logs Element X in by a QR code, with the requests that the old and the new device send', async () => {
      const old = await server.register('bob');
      const send = async (
        method: string,
        url: string,
        headers: Record<string, string> = {},
        body?: string,
      ) => {
        const path = new URL(url, 'https://test/').pathname;
        const response = await fetch(server.baseUrl + path, {
          method,
          headers: { ...(body !== undefined && { 'content-type': 'text/plain' }), ...headers },
          ...(body !== undefined && { body }),
        });
        const names = ['etag', 'expires', 'last-modified'];
        assert.ok(
          names.every((name) => response.headers.get(name)),
          `${method} ${response.status}`,
        );
        const etag = response.headers.get('etag')!;
        const type = response.headers.get('content-type');
        return { status: response.status, etag, type, text: await response.text() };
      };
      const create = '/_matrix/client/unstable/org.matrix.msc4108/rendezvous';
      const created = await send('POST', create, {}, '');
      assert.equal(created.status, 201);
      const { url } = JSON.parse(created.text) as { url: string };
      const scanned = await send('GET', url);
      assert.deepEqual([scanned.status, scanned.text, scanned.etag], [200, '', created.etag]);
      const unchanged = await send('GET', url, { 'if-none-match': created.etag });
      assert.deepEqual([unchanged.status, unchanged.etag], [304, created.etag]);
      const sent = await send('PUT', url, { 'if-match': scanned.etag }, 'MATRIX_QR_CODE_LOGIN_INITIATE');
      assert.equal(sent.status, 202);
      const received = await send('GET', url, { 'if-none-match': created.etag });
      assert.deepEqual(
        [received.status, received.type, received.text, received.etag],
        [200, 'text/plain', 'MATRIX_QR_CODE_LOGIN_INITIATE', sent.etag],
      );

      const { redirect_uris: _, response_types: __, ...metadata } = elementX;
      const grant_types = ['refresh_token', grantType];
      const path = '/_synapse/client/oauth2/registration';
      const { json: registered } = await postJson(server, path, { ...metadata, grant_types });
      const client_id = String(registered['client_id']);
      const prefix = 'urn:matrix:org.matrix.msc2967.client';
      const scope = `${prefix}:api:* ${prefix}:device:NEWPHONE`;
      const newDevice = new TestBrowser(server);
      const begun = await newDevice.post(client.metadata['device_authorization_endpoint']!, {
        client_id,
        scope,
      });
      const { device_code, verification_uri_complete: shown } = begun.json as Record<string, string>;
      const statusOfNewDevice = async () =>
        (await server.api('GET', '/_matrix/client/v3/devices/NEWPHONE', { token: old.token })).status;
      assert.equal(await statusOfNewDevice(), 404);
      const browser = new TestBrowser(server);
      const signInPage = await browser.open(shown!);
      const page = await browser.open(locationOf(await browser.signIn(signInPage, 'bob')));
      await browser.post(link, { ...fieldsOf(page.text), decision: 'allow' });
      const fields = { grant_type: grantType, device_code: device_code!, client_id };
      const { json: tokens } = await newDevice.post(client.metadata['token_endpoint']!, fields);
      assert.equal(tokens['scope'], scope);
      assert.deepEqual(await client.whoami(tokens['access_token']), ['@bob:test', 'NEWPHONE']);
      assert.equal(await statusOfNewDevice(), 200);
      const refresh = {
        grant_type: 'refresh_token',
        refresh_token: String(tokens['refresh_token']),
        client_id,
      };
      assert.equal((await newDevice.post(client.metadata['token_endpoint']!, refresh)).status, 200);
    });

    it('answers polls with access_denied after a denial, slow_down when they come too fast, expired_token after 15 minutes, and invalid_grant for an unknown code', async () => {
      const denied = await begin('DENIED');
      const { browser, page } = await signIn(denied['verification_uri_complete']!);
      await browser.post(link, { ...fieldsOf(page.text), decision: 'deny' });
      assert.equal((await poll(denied['device_code'])).json['error'], 'access_denied');
      const slow = await begin('SLOW');
      await poll(slow['device_code']);
      const tooSoon = await client.token({ grant_type: grantType, device_code: slow['device_code']! });
      assert.equal(tooSoon.json['error'], 'slow_down');
      await clock.advance(900_000);
      assert.equal((await poll(slow['device_code'])).json['error'], 'expired_token');
      assert.equal((await poll('guess')).json['error'], 'invalid_grant');
      await begin('NEXT');
      assert.equal((await poll(slow['device_code'])).json['error'], 'expired_token', 'after another login');
    });

    it('issues tokens only to the client that began the device login, and refuses clients that have not registered the grant type', async () => {
      const begun = await begin('OWN');
      const { browser, page } = await signIn(begun['verification_uri_complete']!);
      await browser.post(link, { ...fieldsOf(page.text), decision: 'allow' });
      const other = await OAuthClient.register(server, { ...elementX, client_name: 'Other' });
      assert.equal((await poll(begun['device_code'], other)).json['error'], 'invalid_grant');
      const withoutDeviceGrant = { ...elementX, grant_types: ['authorization_code', 'refresh_token'] };
      const refused = await (await OAuthClient.register(server, withoutDeviceGrant)).beginOnDevice('D');
      assert.equal(refused.json['error'], 'unauthorized_client');
    });

    it('limits the rate at which a user enters device codes, so that codes cannot be guessed', async () => {
      const { browser } = await signIn(link);
      await clock.advance(600_000);
      for (let attempt = 0; attempt < 12; attempt++) {
        const { status } = await browser.get(`${link}?code=BBBB-BBB${'BCDFGHJKLMNP'[attempt]}`);
        assert.equal(status, attempt < 10 ? 404 : 429, `attempt ${attempt}`);
      }
    });
  });

  describe('rendezvous sessions', () => {
    let server: TestServer;
    let clock: ManualClock;
    before(async () => {
      clock = manualClock();
      server = await startTestServer({
        database: open.kind,
        clock,
        config: { oauth: { oauth2: { enabled: true } } },
      });
    });
    after(() => server.stop());

    const send = (method: string, url: string, body?: string, headers: Record<string, string> = {}) =>
      fetch(server.baseUrl + new URL(url, 'https://test/').pathname, {
        method,
        headers: { 'content-type': 'text/plain', ...headers },
        ...(body !== undefined && { body }),
      });

    it('carries text between two devices in a rendezvous session of MSC4108', async () => {
      const features = (await server.api('GET', '/_matrix/client/versions')).body['unstable_features'];
      assert.equal((features as Record<string, boolean>)['org.matrix.msc4108'], true);
      const create = '/_matrix/client/unstable/org.matrix.msc4108/rendezvous';
      const created = await send('POST', create, 'first');
      assert.equal(created.status, 201);
      const etag = created.headers.get('etag')!;
      assert.ok(new Date(created.headers.get('expires')!).getTime() > clock.now());
      assert.match(created.headers.get('access-control-expose-headers')!, /ETag/);
      const { url } = (await created.json()) as { url: string };
      const read = await send('GET', url);
      assert.deepEqual([read.headers.get('content-type'), await read.text()], ['text/plain', 'first']);
      assert.equal(read.headers.get('x-content-type-options'), 'nosniff');
      assert.match(read.headers.get('content-security-policy')!, /^sandbox; default-src 'none'/);
      assert.equal((await send('GET', url, undefined, { 'if-none-match': etag })).status, 304);
      const written = await send('PUT', url, 'second', { 'if-match': etag });
      assert.equal(written.status, 202);
      assert.notEqual(written.headers.get('etag'), etag);
      const staleWrite = await send('PUT', url, 'third', { 'if-match': etag });
      assert.equal(staleWrite.status, 412);
      assert.equal(
        ((await staleWrite.json()) as Record<string, string>)['org.matrix.msc4108.errcode'],
        'M_CONCURRENT_WRITE',
      );
      assert.equal((await send('PUT', url, 'x')).status, 400);
      assert.equal((await send('PUT', url, '{}', { 'content-type': 'application/json' })).status, 400);
      assert.equal((await send('PUT', url, 'x'.repeat(4_097), { 'if-match': etag })).status, 413);
      assert.equal((await send('DELETE', url)).status, 204);
      assert.equal((await send('GET', url)).status, 404);
      const expiring = (await (await send('POST', create, 'first')).json()) as { url: string };
      await clock.advance(60_000);
      assert.equal((await send('GET', expiring.url)).status, 404);
      const preflight = await send('OPTIONS', create);
      assert.match(preflight.headers.get('access-control-allow-headers')!, /If-Match, If-None-Match/);
    });

    it('carries JSON between two devices in a rendezvous session of MSC4388', async () => {
      const create = '/_matrix/client/unstable/io.element.msc4388/rendezvous';
      assert.deepEqual((await server.api('GET', create)).body, { create_available: true });
      const created = (await postJson(server, create, { data: 'first' })).json;
      assert.equal(created['expires_in_ms'], 120_000);
      const path = `${create}/${created['id']}`;
      const first = (await server.api('GET', path)).body;
      assert.deepEqual([first['data'], first['sequence_token']], ['first', created['sequence_token']]);
      const put = (data: string, token: unknown) =>
        server.api('PUT', path, { body: { data, sequence_token: token } });
      const written = await put('second', created['sequence_token']);
      assert.equal(written.status, 200);
      assert.equal(
        (await put('second', created['sequence_token'])).status,
        200,
        'repeated after a lost response',
      );
      const staleWrite = await put('third', created['sequence_token']);
      assert.deepEqual(
        [staleWrite.status, staleWrite.body['errcode']],
        [409, 'IO_ELEMENT_MSC4388_CONCURRENT_WRITE'],
      );
      assert.equal((await server.api('GET', path)).body['sequence_token'], written.body['sequence_token']);
      for (const headers of [
        { 'sec-fetch-dest': 'document' },
        { 'sec-fetch-mode': 'navigate' },
        { 'sec-fetch-user': '?1' },
        { 'sec-fetch-site': 'none' },
      ]) {
        assert.equal((await server.api('GET', path, { headers: headers as never })).status, 403);
      }
      assert.equal((await server.api('DELETE', path)).status, 200);
      assert.equal((await server.api('GET', path)).status, 404);
    });
  });
});
