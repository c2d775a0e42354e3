import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { AccountsServer, testAccountOptions } from '../../test/support/servers/accounts-server.ts';
import type { CapabilityOptions, ServedFeatures } from './capabilities.ts';
import { type AuthMetadata, capabilityRoutes } from './routes.ts';
import type { FeatureOptions } from './versions.ts';
import type { WellKnownOptions } from './well-known.ts';

const defaults: CapabilityOptions & WellKnownOptions & FeatureOptions = {
  password_config: testAccountOptions.password_config,
  default_room_version: '10',
  enable_set_displayname: true,
  enable_set_avatar_url: true,
  forget_rooms_on_leave: false,
  encryption_enabled_by_default_for_room_type: 'off',
  max_event_delay_duration: null,
  server_name: 'test:8448',
  public_baseurl: null,
  extra_well_known_client_content: {},
  default_identity_server: null,
  serve_server_wellknown: false,
  admin_contact: null,
};

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (
    options: Partial<typeof defaults> = {},
    served: Partial<ServedFeatures> = {},
    authMetadata?: AuthMetadata,
  ) => {
    const servedFeatures = {
      thirdPartyIdChanges: false,
      loginTokens: false,
      confirmsLoginTokens: true,
      locking: true,
      suspension: false,
      maxDelayedEvents: 100,
      ...served,
    };
    server = await AccountsServer.start(open, {
      routes: () => capabilityRoutes({ served: servedFeatures, authMetadata }, { ...defaults, ...options }),
    });
  };
  const get = (path: string, token?: string) => server.call('GET', path, { token });
  const capabilities = async (token: string) =>
    (await get('/capabilities', token)).body['capabilities'] as Record<string, Record<string, unknown>>;

  describe('GET /versions', () => {
    it('GET /versions responds to requests without authentication, even to those with an expired token', async () => {
      await start();
      const { status, body } = await get('/_matrix/client/versions', 'expired');
      assert.equal(status, 200);
      assert.ok((body['versions'] as string[]).includes('v1.1'));
      assert.equal((body['unstable_features'] as Record<string, boolean>)['uk.tcpip.msc4133'], true);
    });
  });

  describe('unstable features of GET /versions', () => {
    const features = async () => (await get('/_matrix/client/versions')).body['unstable_features'];

    it('unstable_features show which presets create encrypted rooms', async () => {
      for (const [rule, forced] of [
        ['off', [false, false, false]],
        ['invite', [true, true, false]],
        ['all', [true, true, true]],
      ] as const) {
        await start({ encryption_enabled_by_default_for_room_type: rule });
        const found = (await features()) as Record<string, boolean>;
        const presets = ['private', 'trusted_private', 'public'];
        assert.deepEqual(
          presets.map((preset) => found[`io.element.e2ee_forced.${preset}`]),
          forced,
        );
        if (rule !== 'all') await server.stop();
      }
    });

    it('unstable_features show whether delayed events are enabled, and the capabilities show their limits', async () => {
      await start({ max_event_delay_duration: 5_000 });
      const advertisedDelayedEvents = async () => {
        const found = (await features()) as Record<string, boolean>;
        return [found['org.matrix.msc4140'], found['org.matrix.msc4140.stable']];
      };
      assert.deepEqual(await advertisedDelayedEvents(), [true, true]);
      const { token } = await server.register('alice');
      const found = await capabilities(token);
      const limits = { max_delay_ms: 5_000, max_scheduled: 100 };
      assert.deepEqual(
        [found['m.delayed_events'], found['org.matrix.msc4140.delayed_events']],
        [limits, limits],
      );
      await server.stop();
      await start();
      assert.deepEqual(await advertisedDelayedEvents(), [false, false]);
      assert.equal(
        (await capabilities((await server.register('alice')).token))['m.delayed_events'],
        undefined,
      );
    });
  });

  describe('GET /capabilities', () => {
    it('returns the capabilities of the user', async () => {
      await start();
      const { token } = await server.register('alice');
      const userCapabilities = await capabilities(token);
      const versions = userCapabilities['m.room_versions'] as {
        default: string;
        available: Record<string, string>;
      };
      assert.deepEqual([versions.default, versions.available['12']], ['10', 'stable']);
      assert.equal(versions.available['org.matrix.msc3757.11'], 'unstable');
      for (const [name, enabled] of [
        ['m.change_password', true],
        ['m.set_displayname', true],
        ['m.set_avatar_url', true],
        ['m.profile_fields', true],
        ['m.3pid_changes', false],
        ['m.get_login_token', false],
        ['m.forget_forced_upon_leave', false],
      ] as const) {
        assert.deepEqual(userCapabilities[name], { enabled }, name);
      }
      assert.equal(userCapabilities['m.account_moderation'], undefined);
      const { body: guest } = await server.call('POST', '/register?kind=guest', { body: {} });
      const guestCapabilities = await capabilities(String(guest['access_token']));
      assert.deepEqual(guestCapabilities['m.change_password'], { enabled: false });
      assert.equal((await get('/capabilities')).body['errcode'], 'M_MISSING_TOKEN');
    });

    it('returns the capabilities that the options allow; administrators can also change profiles that the options protect, and moderate accounts', async () => {
      await start(
        {
          password_config: { ...testAccountOptions.password_config, enabled: 'only_for_reauth' },
          enable_set_displayname: false,
          enable_set_avatar_url: false,
          forget_rooms_on_leave: true,
        },
        { thirdPartyIdChanges: true, loginTokens: true },
      );
      const { token } = await server.register('alice');
      const found = await capabilities(token);
      for (const name of ['m.change_password', 'm.set_displayname', 'm.set_avatar_url']) {
        assert.deepEqual(found[name], { enabled: false }, name);
      }
      for (const name of ['m.3pid_changes', 'm.get_login_token', 'm.forget_forced_upon_leave']) {
        assert.deepEqual(found[name], { enabled: true }, name);
      }
      assert.deepEqual(found['m.profile_fields'], {
        enabled: true,
        disallowed: ['displayname', 'avatar_url'],
      });
      const asAdmin = await capabilities((await server.registerAdmin()).token);
      assert.deepEqual(asAdmin['m.set_displayname'], { enabled: true });
      assert.deepEqual(asAdmin['m.account_moderation'], { lock: true, suspend: false });
    });
  });

  describe('well-known files', () => {
    const path = (name: string) => `/.well-known/matrix/${name}`;

    it('GET /.well-known/matrix/client, /server and /support respond 404 unless the operator has configured their content', async () => {
      await start();
      for (const name of ['client', 'server', 'support']) {
        const { status, body } = await get(path(name));
        assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
      }
    });

    it("GET /.well-known/matrix/client returns base URLs and the operator's additions [option: public_baseurl, default_identity_server, extra_well_known_client_content]", async () => {
      await start({
        public_baseurl: 'https://chat.test/',
        default_identity_server: 'https://id.test',
        extra_well_known_client_content: { 'org.example.x': { a: 1 }, 'm.homeserver': 'overridden' },
      });
      const expected = {
        'm.homeserver': { base_url: 'https://chat.test/' },
        'm.identity_server': { base_url: 'https://id.test' },
        'org.example.x': { a: 1 },
      };
      assert.deepEqual((await get(path('client'))).body, expected);
      assert.deepEqual((await get('/.well-known/proto/client')).body, expected);
    });

    it('GET /.well-known/matrix/server delegates to port 443 [option: serve_server_wellknown]', async () => {
      await start({ serve_server_wellknown: true });
      assert.deepEqual((await get(path('server'))).body, { 'm.server': 'test:443' });
    });

    it('GET /.well-known/matrix/support returns the contact of the administrator [option: admin_contact]', async () => {
      for (const [admin_contact, expected] of [
        ['mailto:me@example.org', { contacts: [{ email_address: 'me@example.org', role: 'm.role.admin' }] }],
        ['me@example.org', { contacts: [{ email_address: 'me@example.org', role: 'm.role.admin' }] }],
        ['@me:test', { contacts: [{ matrix_id: '@me:test', role: 'm.role.admin' }] }],
        ['https://test/help', { support_page: 'https://test/help' }],
      ] as const) {
        await start({ admin_contact });
        assert.deepEqual((await get(path('support'))).body, expected);
        if (admin_contact !== 'https://test/help') await server.stop();
      }
    });
  });

  describe('GET /auth_metadata', () => {
    it('responds 404 M_UNRECOGNIZED without an authorization server', async () => {
      await start();
      const { status, body } = await get('/_matrix/client/v1/auth_metadata');
      assert.deepEqual([status, body['errcode']], [404, 'M_UNRECOGNIZED']);
    });

    it('returns the metadata of the authorization server', async () => {
      const metadata = {
        issuer: 'https://auth.test/',
        authorization_endpoint: 'https://auth.test/authorize',
        token_endpoint: 'https://auth.test/token',
        revocation_endpoint: 'https://auth.test/revoke',
        registration_endpoint: 'https://auth.test/register',
        response_types_supported: ['code'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        response_modes_supported: ['query', 'fragment'],
        code_challenge_methods_supported: ['S256'],
      };
      await start({}, {}, async () => metadata);
      assert.deepEqual((await get('/_matrix/client/v1/auth_metadata')).body, metadata);
    });
  });
});
