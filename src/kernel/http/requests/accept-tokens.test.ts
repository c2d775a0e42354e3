import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createKernelServer } from '../../../../test/support/servers/kernel-server.ts';
import { MatrixError } from '../../../protocol/index.ts';
import { type Requester, route } from '../index.ts';
import { acceptTokens, type TokenKind } from './accept-tokens.ts';

const requesterOf = (userId: string, appservice?: string): Requester => ({
  userId,
  deviceId: undefined,
  isGuest: false,
  isAdmin: false,
  appservice,
  tokenId: undefined,
});
const context = { assertedUserId: undefined, assertedDeviceId: undefined, ip: '::1', userAgent: undefined };

const bridges: TokenKind = {
  authenticate: (token, { assertedUserId }) =>
    token === 'bridge' ? requesterOf(assertedUserId ?? '@bridge:test', 'bridge') : undefined,
};
const delegated: TokenKind = {
  authenticate: async (token) => (token.startsWith('oauth-') ? requesterOf('@oauth:test') : undefined),
};
let checkedTokens: string[] = [];
const sessions = {
  authenticate(token: string) {
    checkedTokens.push(token);
    if (token === 'session') return requesterOf('@session:test');
    const isExpired = token === 'expired';
    throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Unknown or expired', { soft_logout: isExpired });
  },
};

describe('acceptTokens', () => {
  it('tries the kinds of tokens in their order, and returns a promise only if a kind of token returns one', async () => {
    const withoutPromises = acceptTokens([bridges, sessions]);
    const found = withoutPromises.authenticate('bridge', { ...context, assertedUserId: '@irc:test' });
    assert.ok(!(found instanceof Promise));
    assert.deepEqual([found.userId, found.appservice], ['@irc:test', 'bridge']);
    assert.equal((withoutPromises.authenticate('session', context) as Requester).userId, '@session:test');
    const authenticator = acceptTokens([bridges, delegated, sessions]);
    checkedTokens = [];
    assert.equal((await authenticator.authenticate('oauth-1', context)).userId, '@oauth:test');
    assert.deepEqual(checkedTokens, []);
    assert.equal((await authenticator.authenticate('session', context)).userId, '@session:test');
    assert.deepEqual(checkedTokens, ['session']);
  });

  it('throws the error of the kind that the token belongs to', async () => {
    const authenticator = acceptTokens([bridges, delegated, sessions]);
    await assert.rejects(async () => authenticator.authenticate('expired', context), {
      extra: { soft_logout: true },
    });
    assert.throws(() => acceptTokens([sessions]).authenticate('expired', context), {
      errcode: 'M_UNKNOWN_TOKEN',
    });
  });

  it('throws M_UNKNOWN_TOKEN for a token that no kind knows', async () => {
    const unknown = { status: 401, errcode: 'M_UNKNOWN_TOKEN', extra: { soft_logout: false } };
    assert.throws(() => acceptTokens([bridges]).authenticate('x', context), unknown);
    await assert.rejects(async () => acceptTokens([delegated, bridges]).authenticate('x', context), unknown);
  });
});

describe('a route with auth on-demand', () => {
  const server = createKernelServer({
    authenticator: acceptTokens([bridges, delegated, sessions]),
    routes: [
      route({ method: 'GET', path: '/_proto/client/who', auth: 'on-demand' }, async ({ authenticate }) => ({
        me: (await authenticate())?.userId ?? null,
      })),
      route({ method: 'GET', path: '/_proto/client/anyone', auth: 'on-demand' }, () => ({})),
    ],
  });
  let base = '';
  before(async () => {
    base = (await server.start())[0]!;
  });
  after(() => server.stop(100));
  async function get(path: string, token?: string) {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(`${base}/_matrix/client/${path}`, { headers });
    return [response.status, await response.json()] as const;
  }

  it('authenticates the token when the handler calls authenticate(), which returns undefined without a token', async () => {
    assert.deepEqual(await get('who'), [200, { me: null }]);
    assert.deepEqual(await get('who', 'session'), [200, { me: '@session:test' }]);
    assert.deepEqual(await get('who', 'oauth-1'), [200, { me: '@oauth:test' }]);
    assert.deepEqual(await get('who?user_id=@irc:test', 'bridge'), [200, { me: '@irc:test' }]);
    assert.deepEqual(await get('who?access_token=session'), [200, { me: '@session:test' }]);
  });

  it('answers 401 M_UNKNOWN_TOKEN for a bad token only when the handler calls authenticate()', async () => {
    const [status, body] = await get('who', 'expired');
    assert.equal(status, 401);
    assert.deepEqual(body, { errcode: 'M_UNKNOWN_TOKEN', error: 'Unknown or expired', soft_logout: true });
    checkedTokens = [];
    assert.deepEqual(await get('anyone', 'expired'), [200, {}]);
    assert.deepEqual(checkedTokens, []);
  });
});
