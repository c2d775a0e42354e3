import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { openContents } from '../../../test/support/databases/database-contents.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import type { RefreshCheck } from '../../accounts/index.ts';
import { oauthMigrations } from '../migrations.ts';
import type { OAuthTables } from '../tables.ts';
import { elementX, OAuthClient, postJson, TestBrowser } from '../test/oauth-client.ts';
import { OAuthSessions } from '../tokens/oauth-sessions.ts';
import { Clients } from './clients.ts';

const day = 24 * 60 * 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('registrations of clients', () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer({
        database: open.kind,
        config: { oauth: { oauth2: { enabled: true } } },
      });
    });
    after(() => server.stop());
    const register = (more: Record<string, unknown>) =>
      postJson(server, '/_synapse/client/oauth2/registration', { ...elementX, ...more });

    it('returns the registered metadata, and the same client id for the same metadata', async () => {
      const first = await register({
        'client_name#fr': 'Élément',
        grant_types: [...elementX.grant_types, 'x'],
      });
      assert.equal(first.status, 201);
      const { client_id: id, ...rest } = first.json;
      assert.deepEqual(rest, elementX);
      assert.equal((await register({})).json['client_id'], id);
      assert.notEqual((await register({ client_name: 'Other' })).json['client_id'], id);
    });

    it('refuses invalid metadata, and redirect URIs and links that do not belong to the client', async () => {
      const registrationError = async (more: Record<string, unknown>) => (await register(more)).json['error'];
      for (const uri of [
        'example:/callback',
        'io.element.android://callback',
        'io.elementary:/',
        'https://localhost/callback',
        'http://localhost:1234/callback',
        'http://element.io/',
        'https://element.io.attacker.example/',
        'https://notelement.io/',
        'https://element.io/#fragment',
        'https://user@element.io/',
        'javascript:alert(1)',
        'data:text/html,x',
        'https://a;sandbox.element.io/',
        'https://*.element.io/',
        'io.element:/ x',
      ]) {
        assert.equal(await registrationError({ redirect_uris: [uri] }), 'invalid_redirect_uri', uri);
      }
      for (const uri of [
        'io.element:/callback',
        'io.element.android:callback',
        'http://127.0.0.1/callback',
        'http://[::1]/callback',
        'http://localhost',
        'https://app.element.io:5173/?query=value',
      ]) {
        assert.equal(await registrationError({ redirect_uris: [uri] }), undefined, uri);
      }
      assert.equal(
        await registrationError({ application_type: 'web', redirect_uris: ['http://localhost/'] }),
        'invalid_redirect_uri',
      );
      for (const more of [
        { client_uri: undefined },
        { client_uri: 'http://element.io' },
        { client_uri: 'https://com/' },
        { policy_uri: 'https://attacker.example/' },
        { client_uri: 'https://element;sandbox.io/', redirect_uris: [] },
        { logo_uri: 'data:image/png;base64,' },
        { token_endpoint_auth_method: 'client_secret_basic' },
        { client_name: 5 },
        { application_type: 'x' },
        { response_types: ['token'] },
      ]) {
        assert.equal(await registrationError(more), 'invalid_client_metadata', JSON.stringify(more));
      }
      assert.equal(await registrationError({ redirect_uris: [] }), 'invalid_redirect_uri');
    });

    it('keeps the registration of a client for a year after the last login or refresh', async () => {
      const database = await open(oauthMigrations);
      const clock = manualClock();
      const clients = new Clients({ database, clock });
      const owner = { userId: '@alice:test', deviceId: 'PHONE', tokenId: undefined };
      const granted = { ...owner, scope: '', providerSession: undefined };
      const tokens = { accessToken: 'a', refreshToken: 'b', expiresInMs: undefined };
      const sessions = new OAuthSessions({
        database,
        clock,
        clients,
        providerSessions: undefined,
        devices: { remove: async () => undefined } as never,
        login: {
          check: async () => undefined,
          open: async (_user, _device, before, opened) => {
            await database.transaction(async (writer) => {
              await before?.(writer);
              await opened?.(writer, 'PHONE');
            });
            return { ...tokens, deviceId: 'PHONE' };
          },
        },
        sessions: {
          refresh: async (_token: string, _ip: string, inTransaction: RefreshCheck) => {
            await database.transaction((writer) => inTransaction(writer, owner));
            return tokens;
          },
        } as never,
      });
      const { clientId } = await clients.register(elementX);
      /** Advances the clock. @returns the client */
      const daysLater = async (days: number) => {
        await clock.advance(days * day);
        return clients.get(clientId);
      };
      const redeem = async () => undefined;
      await sessions.open(await daysLater(300), granted, '::1', redeem);
      await sessions.refresh(await daysLater(300), 'token', '::1');
      await database.transaction<OAuthTables, unknown>((writer) =>
        writer.deleteFrom('oauth_sessions').execute(),
      );
      await daysLater(300);
      await clients.deleteUnused();
      assert.equal((await clients.find(clientId))?.clientId, clientId);
      await daysLater(66);
      await clients.deleteUnused();
      assert.equal(await clients.find(clientId), undefined);
    });

    it('deletes registrations without sessions above the maximum number, beginning with those that never had a session', async () => {
      const database = await open(oauthMigrations);
      const clock = manualClock();
      const clients = new Clients({ database, clock }, 3);
      const register = async (client_name: string) => {
        await clock.advance(1_000);
        return clients.register({ ...elementX, client_name });
      };
      const used = await clients.get((await register('used')).clientId);
      const withSession = await register('open');
      await clock.advance(1_000);
      await database.transaction<OAuthTables, void>(async (writer) => {
        await clients.markUsedIn(writer, used);
        const session = { user_id: '@a:test', device_id: 'A', client_id: withSession.clientId, scope: '' };
        await writer.insertInto('oauth_sessions').values(session).execute();
      });
      const newer = [];
      for (let i = 0; i < 5; i++) newer.push(await register(`newer ${i}`));
      const areStored = async (list: readonly { clientId: string }[]) =>
        Promise.all(list.map(async ({ clientId }) => (await clients.find(clientId)) !== undefined));
      assert.deepEqual(await areStored([used, withSession]), [true, true]);
      assert.deepEqual(await areStored(newer), [false, false, false, false, true]);
    });

    it('refuses metadata of more than 8,192 characters', async () => {
      const redirect_uris = Array.from(
        { length: 6 },
        (_, i) => `https://element.io/${'x'.repeat(1_900)}${i}`,
      );
      const { status, json } = await register({ redirect_uris });
      assert.deepEqual([status, json['error']], [400, 'invalid_client_metadata']);
    });

    it('removes invisible characters from the name of a client', async () => {
      const { json } = await register({ client_name: '\u202eElement\u0000\u200b X' });
      assert.equal(json['client_name'], 'Element X');
    });

    it('accepts any port in a registered redirect URI to the same machine', async () => {
      const client = await OAuthClient.register(server, {
        ...elementX,
        redirect_uris: ['http://127.0.0.1/back'],
      });
      const browser = new TestBrowser(server);
      const request = (uri: string) => browser.get(client.authorizationUrl('D', { redirect_uri: uri }));
      assert.equal((await request('http://127.0.0.1:41234/back')).status, 303);
      assert.equal((await request('http://127.0.0.1:41234/other')).status, 400);
      assert.equal((await request('http://127.0.0.1:1@attacker.example/back')).status, 400);
    });

    it('answers unauthorized_client to grant types that a client has not registered', async () => {
      const deviceCode = 'urn:ietf:params:oauth:grant-type:device_code';
      const registerWith = (...grant_types: string[]) =>
        OAuthClient.register(server, { ...elementX, grant_types });
      const deviceClient = await registerWith('refresh_token', deviceCode);
      const refused = await new TestBrowser(server).get(deviceClient.authorizationUrl('D'));
      assert.equal(refused.status, 400);
      assert.match(refused.text, /error=unauthorized_client/);
      const browserClient = await registerWith('authorization_code');
      for (const answer of [
        await deviceClient.exchange('code'),
        await browserClient.refresh('token'),
        await browserClient.beginOnDevice('D'),
        await browserClient.token({ grant_type: deviceCode, device_code: 'code' }),
      ]) {
        assert.deepEqual([answer.status, answer.json['error']], [400, 'unauthorized_client']);
      }
    });

    it('issues no refresh token, and by default an access token that does not expire, to clients without the grant type refresh_token, and lets them refresh sessions of earlier versions', async () => {
      const grant_types = ['authorization_code'];
      const client = await OAuthClient.register(server, { ...elementX, grant_types });
      await server.register('rita');
      const tokens = await client.logIn(new TestBrowser(server), { user: 'rita', deviceId: 'LASTING' });
      assert.deepEqual([tokens['refresh_token'], tokens['expires_in']], [undefined, undefined]);
      assert.deepEqual(await client.whoami(tokens['access_token']), ['@rita:test', 'LASTING']);

      // A session of an earlier version, which issued a refresh token to every client.
      const login = { type: 'm.login.password', user: 'rita', password: 'correct horse', device_id: 'OLD' };
      const body = { ...login, refresh_token: true };
      const old = (await server.api('POST', '/_matrix/client/v3/login', { body })).body;
      const contents = await openContents(server.databaseOptions);
      const row = { user_id: '@rita:test', device_id: 'OLD', client_id: client.clientId, scope: '' };
      await contents.insert('oauth_sessions', row);
      await contents.close();
      const { json } = await client.refresh(old['refresh_token']);
      assert.deepEqual(await client.whoami(json['access_token']), ['@rita:test', 'OLD']);
    });
  });

  describe('OAuth 2.0 on a server that has not enabled it', () => {
    it('answers 404 M_UNRECOGNIZED to requests of OAuth 2.0 [option: oauth2.enabled]', async () => {
      const server = await startTestServer({ database: open.kind });
      const found = await server.api('GET', '/_matrix/client/v1/auth_metadata');
      assert.deepEqual([found.status, found.body['errcode']], [404, 'M_UNRECOGNIZED']);
      const { status } = await postJson(server, '/_synapse/client/oauth2/registration', elementX);
      assert.equal(status, 404);
      await server.stop();
    });
  });
});
