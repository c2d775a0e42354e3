import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { FakeResolver } from '../../../test/support/network/loopback.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { OutboundHttp, outboundSection } from '../../kernel/outbound/index.ts';
import { fetchConfigured } from '../operator-requests.ts';
import { ProviderKeys } from './provider-keys.ts';
import { ProviderRequests } from './provider-requests.ts';

describe('requests to a provider of OpenID Connect', () => {
  const clock = manualClock();
  const caches = plainCaches(clock);
  const resolver = new FakeResolver();
  // 127.0.0.2 stands for the private network of the operator, and 127.0.0.1 for the internet.
  resolver.hosts.set('public.example', ['127.0.0.1']);
  resolver.hosts.set('other.example', ['127.0.0.1']);
  resolver.hosts.set('inside.example', ['127.0.0.2']);
  const open = (name: string, ip_range_blacklist: string[]) =>
    new OutboundHttp({
      clock,
      caches,
      name,
      resolver,
      config: { ...sectionDefaults(outboundSection, {}), ip_range_blacklist },
    });
  const http = open('all', []);
  const guardedHttp = open('guarded', ['127.0.0.2/32']);
  const requestedUrls: string[] = [];
  const server = createServer((request, response) => {
    requestedUrls.push(`${request.headers.host?.replace(/:.*/, '')}${request.url}`);
    const redirectUrl = new URL(request.url ?? '', 'http://x').searchParams.get('to');
    if (redirectUrl !== null) response.writeHead(302, { location: redirectUrl });
    response.end('{}');
  });
  before(() => new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve)));
  after(async () => {
    await Promise.all([http.close(), guardedHttp.close()]);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = (host: string, path = '/') => `http://${host}:${(server.address() as AddressInfo).port}${path}`;
  const refusedAddress = { failure: 'refused-address' };

  it('refuses private addresses that the discovery document of a public provider names', async () => {
    const requests = new ProviderRequests({ http, guardedHttp }, new Set([url('inside.example', '/keys')]));
    await requests.discovery(url('public.example'));
    await assert.rejects(requests.json(url('inside.example')), refusedAddress);
    await assert.rejects(requests.text(url('inside.example'), 'token'), refusedAddress);
    await assert.rejects(
      requests.fetch(url('inside.example'), { method: 'POST', headers: {} }),
      refusedAddress,
    );
    assert.deepEqual(requestedUrls.splice(0), ['public.example/']);
    await requests.json(url('other.example'));
    await requests.json(url('inside.example', '/keys'));
    assert.deepEqual(
      requestedUrls.splice(0),
      ['other.example/', 'inside.example/keys'],
      'a configured URL is allowed',
    );
  });

  it('allows private addresses when the discovery document is at a private address', async () => {
    const requests = new ProviderRequests({ http, guardedHttp }, new Set());
    await requests.discovery(url('inside.example'));
    await requests.json(url('inside.example', '/keys'));
    assert.deepEqual(requestedUrls.splice(0), ['inside.example/', 'inside.example/keys']);
  });

  it('follows redirects of configured URLs from public to public addresses, and from private addresses only to the same host', async () => {
    const get = (from: string, to: string) =>
      fetchConfigured({ http, guardedHttp }, new URL(`${from}?to=${encodeURIComponent(to)}`), {
        timeout: 60_000,
        maxBody: 100,
        redirects: 3,
      });
    assert.equal((await get(url('public.example'), url('other.example'))).status, 200);
    assert.equal((await get(url('inside.example'), '/moved')).status, 200);
    requestedUrls.length = 0;
    await assert.rejects(get(url('public.example'), url('inside.example')), refusedAddress);
    await assert.rejects(get(url('inside.example'), url('public.example')), refusedAddress);
    assert.ok(
      requestedUrls.every((requestedUrl) => requestedUrl.includes('?to=')),
      String(requestedUrls),
    );
  });

  it('fetches the keys of a provider again after an hour, and keeps the cached keys when the request for an unknown key fails', async () => {
    const pair = await generateKeyPair('RS256', { extractable: true });
    let keys: unknown[] = [{ ...(await exportJWK(pair.publicKey)), kid: 'a', alg: 'RS256' }];
    let fetched = 0;
    const requests = {
      json: async () => {
        fetched += 1;
        if (keys.length === 0 && fetched === 2) throw new Error('no response');
        return { keys };
      },
    } as unknown as ProviderRequests;
    const providerKeys = new ProviderKeys(requests, clock);
    const token = (kid = 'a') =>
      new SignJWT({}).setProtectedHeader({ alg: 'RS256', kid }).sign(pair.privateKey);
    const verify = async (kid?: string) => providerKeys.verify(await token(kid), 'https://keys', {});
    await Promise.all([verify(), verify()]);
    assert.equal(fetched, 1, 'concurrent logins share the request');
    keys = [];
    await assert.rejects(verify('unknown'), /no response/);
    await verify();
    assert.equal(fetched, 2, 'the cached keys stay after a failure');
    clock.advance(3_600_000);
    await assert.rejects(verify(), 'the provider has withdrawn the key');
  });
});
