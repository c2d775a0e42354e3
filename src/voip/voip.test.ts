import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestUser,
} from '../../test/support/servers/server.ts';

const uris = ['turn:turn.example.org:3478?transport=udp', 'turns:turn.example.org:5349'];

/** Starts a server with these options and sends a request to `path` as a user or a guest. */
async function request(
  accounts: ConfigurationOverrides['accounts'],
  path: string,
  { guest = false, now = 1_000_000_000_000 } = {},
) {
  const clock = manualClock(now);
  const server = await startTestServer({
    database: 'sqlite',
    clock,
    config: {
      accounts: {
        enable_registration: true,
        enable_registration_without_verification: true,
        allow_guest_access: true,
        bcrypt_rounds: 4,
        ...accounts,
      },
    },
  });
  try {
    const user = guest ? await registerGuest(server.api) : await server.register('alice');
    const { status, body } = await server.api('GET', `/_matrix/client/${path}`, { token: user.token });
    return { status, body, user };
  } finally {
    await server.stop();
  }
}

async function registerGuest(api: Awaited<ReturnType<typeof startTestServer>>['api']): Promise<TestUser> {
  const { body } = await api('POST', '/_matrix/client/v3/register', { query: { kind: 'guest' }, body: {} });
  return { userId: String(body['user_id']), deviceId: '', token: String(body['access_token']) };
}

it('GET /voip/turnServer computes credentials from the shared secret [option: turn_uris, turn_shared_secret, turn_user_lifetime]', async () => {
  const options = { turn_uris: uris, turn_shared_secret: 'secret', turn_user_lifetime: 86_400_000 };
  const { body, status } = await request(options, 'v3/voip/turnServer');
  assert.equal(status, 200);
  const username = '1000086400:@alice:test';
  const password = createHmac('sha1', 'secret').update(username).digest('base64');
  assert.deepEqual(body, { username, password, uris, ttl: 86_400 });
});

it('GET /voip/turnServer returns the fixed credentials when there is no shared secret [option: turn_username, turn_password]', async () => {
  const options = { turn_uris: uris, turn_username: 'user', turn_password: 'password' };
  const { body } = await request(options, 'v3/voip/turnServer');
  assert.deepEqual(body, { username: 'user', password: 'password', uris, ttl: 3_600 });
});

it('GET /voip/turnServer responds 404 without TURN servers, and when there is neither a shared secret nor fixed credentials', async () => {
  for (const options of [{}, { turn_uris: uris }, { turn_shared_secret: 'secret' }]) {
    const { body, status } = await request(options, 'v3/voip/turnServer');
    assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
  }
});

it('GET /voip/turnServer answers 403 to guests unless the configuration allows guests [option: turn_allow_guests]', async () => {
  const options = { turn_uris: uris, turn_shared_secret: 'secret' };
  const allowed = await request(options, 'v3/voip/turnServer', { guest: true });
  assert.equal(allowed.status, 200);
  const refused = await request({ ...options, turn_allow_guests: false }, 'v3/voip/turnServer', {
    guest: true,
  });
  assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_GUEST_ACCESS_FORBIDDEN']);
});

it('GET /rtc/transports lists the transports for group calls [option: proto_rtc.transports[].type, proto_rtc.transports[].livekit_service_url]', async () => {
  const livekit = { type: 'livekit', livekit_service_url: 'https://livekit.example.org/' };
  const other = { type: 'org.example.other', livekit_service_url: null };
  const options = { proto_rtc: { transports: [livekit, other] } };
  const expected = { rtc_transports: [livekit, { type: 'org.example.other' }] };
  for (const path of ['v1/rtc/transports', 'unstable/org.matrix.msc4143/rtc/transports']) {
    assert.deepEqual((await request(options, path)).body, expected);
    assert.deepEqual((await request({}, path)).body, { rtc_transports: [] });
  }
});
