import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IdentityServers } from './identity-servers.ts';

describe('IdentityServers', () => {
  it('accepts a key only after a response over HTTPS whose member valid is true', async () => {
    const requestedUrls: string[] = [];
    const servers = new IdentityServers({
      async fetch(url) {
        requestedUrls.push(url.href);
        const body = Buffer.from(url.pathname === '/yes' ? '{"valid":true}' : '{"valid":"true"}');
        return { status: 200, headers: {}, body, url };
      },
    });
    const isValid = (url: string) => servers.isKeyValid(url, '+/=');
    assert.deepEqual(
      await Promise.all(
        ['https://id.example/yes?a=b', 'https://id.example/no', 'http://x', 'x'].map(isValid),
      ),
      [true, false, false, false],
    );
    assert.deepEqual(requestedUrls, [
      'https://id.example/yes?a=b&public_key=%2B%2F%3D',
      'https://id.example/no?public_key=%2B%2F%3D',
    ]);
  });
});
