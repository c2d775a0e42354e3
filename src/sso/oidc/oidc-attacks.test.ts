import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { type OidcFixture, oidcCallback, startOidcFixture } from '../test/oidc-fixture.ts';
import type { OidcServer } from '../test/oidc-server.ts';
import type { SsoServer } from '../test/sso-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('attacks on logins with OpenID Connect', () => {
    let fixture: OidcFixture;
    let idp: OidcServer;
    let other: OidcServer;
    let hearth: SsoServer;
    before(async () => {
      fixture = await startOidcFixture(open.kind);
      ({ idp, other, hearth } = fixture);
    });
    after(() => fixture.stop());
    beforeEach(() => fixture.reset());

    /** Begins a login. Returns the URL of the provider's redirect back to this server. */
    const responseUrl = async (browser = hearth.browser(), provider = 'oidc-main') => {
      const callbackUrls: string[] = [];
      const { once } = browser;
      browser.once = async (url, ...rest) => {
        if (url.startsWith(oidcCallback)) {
          callbackUrls.push(url);
          return { status: 200, headers: {}, body: '', url };
        }
        return once.call(browser, url, ...rest);
      };
      await hearth.login(provider, browser);
      browser.once = once;
      assert.ok(callbackUrls[0], 'no response of the provider');
      return callbackUrls[0];
    };

    it('refuses an authorization response in a browser that has not started the login (login CSRF)', async () => {
      idp.user = { sub: 'attacker', preferred_username: 'attacker' };
      const url = await responseUrl();
      const page = await hearth.browser().get(url);
      assert.equal(page.status, 400);
      assert.match(page.body, /started in another browser/);
    });

    it('refuses an authorization response that is sent twice, or with an unknown state', async () => {
      idp.user = { sub: 'r1', preferred_username: 'quentin' };
      const browser = hearth.browser();
      const url = await responseUrl(browser);
      assert.equal((await browser.get(url)).status, 303);
      assert.equal((await browser.get(url)).status, 400);
      const changed = new URL(await responseUrl(browser));
      changed.searchParams.set('state', 'guess');
      assert.equal((await browser.get(changed.href)).status, 400);
    });

    it('refuses the code of another login of the same browser, because nonce and verifier differ', async () => {
      idp.user = { sub: 'r2', preferred_username: 'rosa' };
      const browser = hearth.browser();
      const [one, two] = [new URL(await responseUrl(browser)), new URL(await responseUrl(browser))];
      one.searchParams.set('code', two.searchParams.get('code')!);
      assert.equal((await browser.get(one.href)).status, 400);
      const [three, four] = [
        new URL(await responseUrl(browser, 'oidc-userinfo')),
        new URL(await responseUrl(browser, 'oidc-userinfo')),
      ];
      three.searchParams.set('code', four.searchParams.get('code')!);
      const page = await browser.get(three.href);
      assert.equal(page.status, 400, 'the nonce differs, without PKCE too');
    });

    it('refuses an authorization response that names another issuer (mix-up)', async () => {
      idp.user = { sub: 'r3', preferred_username: 'sven' };
      const browser = hearth.browser();
      const url = new URL(await responseUrl(browser));
      url.searchParams.set('iss', other.issuer);
      assert.equal((await browser.get(url.href)).status, 400);
      assert.equal(other.tokenRequests.length, 0);
    });

    it('refuses id tokens with another key, algorithm, audience, issuer or nonce, and id tokens that expired more than two minutes ago', async () => {
      idp.user = { sub: 'r4', preferred_username: 'tom' };
      const { SignJWT } = await import('jose');
      const statusWithToken = async (makeToken: (claims: Record<string, unknown>) => Promise<string>) => {
        idp.replace = () => undefined;
        const browser = hearth.browser();
        const url = await responseUrl(browser);
        const nonce = idp.authorizations.at(-1)!.get('nonce');
        const now = Math.floor(Date.now() / 1000);
        const claims = {
          iss: idp.issuer,
          aud: 'hearth',
          sub: 'victim',
          preferred_username: 'victim',
          nonce,
          iat: now,
          exp: now + 60,
        };
        const token = await makeToken(claims);
        idp.replace = (path, real) => (path === '/token' ? { ...real, id_token: token } : undefined);
        return (await browser.get(url)).status;
      };
      const unsigned = (claims: object) =>
        `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`;
      const withSecret = (claims: Record<string, unknown>) =>
        new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from('a secret'));
      assert.equal(
        await statusWithToken((claims) => idp.sign({ ...claims, preferred_username: 'genuine' })),
        303,
      );
      assert.equal(await statusWithToken((claims) => other.sign(claims)), 400, 'key');
      assert.equal(await statusWithToken(async (claims) => unsigned(claims)), 400, 'none');
      assert.equal(await statusWithToken(withSecret), 400, 'HS256');
      assert.equal(
        await statusWithToken((claims) => idp.sign({ ...claims, aud: 'elsewhere' })),
        400,
        'audience',
      );
      assert.equal(
        await statusWithToken((claims) => idp.sign({ ...claims, iss: other.issuer })),
        400,
        'issuer',
      );
      assert.equal(
        await statusWithToken((claims) => idp.sign({ ...claims, nonce: 'another' })),
        400,
        'nonce',
      );
      const expiredFor = (seconds: number) => (claims: Record<string, unknown>) =>
        idp.sign({ ...claims, preferred_username: 'genuine', exp: Number(claims['iat']) - seconds });
      assert.equal(await statusWithToken(expiredFor(60)), 303, 'clocks may differ');
      assert.equal(await statusWithToken(expiredFor(180)), 400, 'expired');
    });

    it('refuses redirect URLs that would run scripts, and asks the user before it sends a login token to an unknown client', async () => {
      idp.user = { sub: 'r5', preferred_username: 'ute' };
      for (const url of [
        'javascript:alert(1)',
        'data:text/html,x',
        ' javascript:x',
        'nothing',
        'https://a;sandbox/',
        'https://*/',
        `https://x/${'x'.repeat(3000)}`,
      ]) {
        assert.equal((await hearth.browser().get(hearth.redirectUrl('oidc-main', url))).status, 400, url);
      }
      for (const url of [
        'https://evil.client.example/?loginToken=stolen',
        'https://app.client.example@evil.client.example/',
        'https:\\\\evil.client.example/https://app.client.example/',
      ]) {
        const page = await hearth.browser().get(hearth.redirectUrl('oidc-main', url));
        assert.equal(page.status, 200, url);
        assert.equal(page.headers['location'], undefined);
        assert.match(page.body, /Continue to https:\/\/evil\.client\.example</);
        assert.doesNotMatch(page.body, /loginToken=stolen/);
        assert.equal(page.headers['referrer-policy'], 'no-referrer');
        assert.equal((await hearth.session(page))['user_id'], '@ute:test');
      }
    });
  });
});
