import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { redactUrl } from './redact.ts';

describe('redactUrl', () => {
  it('redacts secret query parameters and keeps the rest', () => {
    const cases = [
      ['/sync', '/sync'],
      ['/sync?since=s1&access_token=abc&timeout=0', '/sync?since=s1&access_token=<redacted>&timeout=0'],
      ['/login?loginToken=abc', '/login?loginToken=<redacted>'],
      ['/cas?session=a&ticket=b', '/cas?session=<redacted>&ticket=<redacted>'],
      ['/oidc?code=a&state=b', '/oidc?code=<redacted>&state=<redacted>'],
      ['/x?%61ccess_token=abc', '/x?%61ccess_token=<redacted>'],
      ['/x?ACCESS_TOKEN=abc', '/x?ACCESS_TOKEN=<redacted>'],
      ['/x?client_secret=a&token=b&sid=c', '/x?client_secret=<redacted>&token=<redacted>&sid=c'],
      ['/x?a?access_token=abc', '/x?a?access_token=abc'],
      ['/x?%zz=abc&flag', '/x?%zz=abc&flag'],
    ];
    for (const [url, expected] of cases) assert.equal(redactUrl(url!), expected);
  });

  it('redacts registration tokens in paths', () => {
    const path = '/_synapse/admin/v1/registration_tokens';
    assert.equal(redactUrl(`${path}/welcome`), `${path}/<redacted>`);
    assert.equal(
      redactUrl(`${path}/welcome?valid=true&token=a`),
      `${path}/<redacted>?valid=true&token=<redacted>`,
    );
    for (const other of [path, `${path}?valid=true`, `${path}/new`, '/x?a=/registration_tokens/b']) {
      assert.equal(redactUrl(other), other);
    }
  });
});
